"""Decides when a batch that is not full leaves with ``pipeline=auto``: rules of the line's observed state and ``now``.

Over a line with round trip R a partition whose window is W can send a batch every R ÷ W, and a connection that may
have C requests unanswered one every R ÷ C. Sending faster uses up all places at once, and the next records wait for the
first answer; sending slower makes records wait needlessly. So a batch leaves that long after the one before, or at once
if that was longer ago: a single record does not wait.

With many places that time is short, and batches would be small for little gain. While more records are expected, a
batch therefore waits for a PATIENCE-th of the round trip, which is hardly noticeable. If records arrive fast enough to
fill the batch within SOON, it waits up to twice as long: smaller ones would cost the broker more. It does not where
records are awaited, since waiting tasks send nothing meanwhile. Full batches do not wait, and may use all the places.
``linger.ms`` and ``batch.size`` bound it all.
"""

from __future__ import annotations

import math
from typing import Final, final

from aioproducer.producer.accumulator.partition_queue import PartitionQueue

PATIENCE: Final = 16
"""The part of the round trip, 6 %, that a batch waits for more records even if there is a place for it."""

SHORTEST: Final = 0.001
"""… or this many seconds, if the round trip is shorter: the loop's timers are no finer."""

SOON: Final = 0.002
"""… or twice this many seconds, if enough to fill a batch arrives in that time, perhaps in bursts."""

AWAITED_FOR: Final = 0.1
"""Seconds for which a line counts as awaited after a batch of awaited records."""

GAIN: Final = 0.125
"""The weight of the newest observation in an average, as TCP has it for round trips (RFC 6298)."""


@final
class Line:
    """Observations of requests to one node. Times are the loop's, in seconds; averages weigh the newest by GAIN."""

    def __init__(self, round_trip: float = 0.0) -> None:
        self.round_trip = round_trip
        """The average time from a request to its answer; 0 before the first."""
        self.departed: float = -math.inf
        """When the last request left."""
        self.awaited: float = -math.inf
        """When a batch last left because its records were awaited."""
        self.records: float = 0.0
        """The average number of records in a request; 0 before the second."""
        self.size: float = 0.0
        """Their average bytes, uncompressed."""
        self.interval: float = 0.0
        """The average time between requests."""

    def sent(self, records: int, size: int, now: float) -> None:
        """A request leaves with this many records of this many uncompressed bytes."""
        if self.departed > -math.inf:
            gain = GAIN if self.records else 1.0
            self.records += gain * (records - self.records)
            self.size += gain * (size - self.size)
            self.interval += gain * (now - self.departed - self.interval)
        self.departed = now

    def answered(self, seconds: float) -> None:
        """A request was answered after this time."""
        self.round_trip += (GAIN if self.round_trip else 1.0) * (seconds - self.round_trip)

    def expected(self, seconds: float) -> float:
        """The records expected within that time."""
        return self.records / self.interval * seconds if self.interval > 0.0 else self.records

    def fills(self, size: int, seconds: float) -> bool:
        """Whether that many bytes are expected within that time."""
        return self.size * seconds >= size * self.interval > 0.0


@final
class Pipeline:
    """The lines to all nodes. ``linger`` is in seconds, ``max_in_flight`` the requests of a connection, ``batch_size``
    the bytes of a full batch."""

    def __init__(self, linger: float, max_in_flight: int, batch_size: int) -> None:
        self._linger = linger
        self._batch_size = batch_size
        self._max_in_flight = max_in_flight
        self._lines: dict[int, Line] = {}

    def sent(self, node: int, records: int, size: int, now: float) -> None:
        line = self._lines.get(node)
        if line is None:
            line = self._lines[node] = Line()
        line.sent(records, size, now)

    def answered(self, node: int, seconds: float) -> None:
        self._lines[node].answered(seconds)

    def awaited(self, node: int, now: float) -> None:
        """A batch leaves for this node because its records are awaited."""
        line = self._lines.get(node)
        if line is not None:
            line.awaited = now

    def line(self, node: int) -> Line | None:
        """The line to this node; None before the first request."""
        return self._lines.get(node)

    def close_at(self, queue: PartitionQueue, created: float) -> float:
        """When the queue's open batch, whose first record came at ``created``, leaves unless it is full before."""
        line = self._lines.get(queue.leader)
        if line is None:
            return created  # its answer will measure the line
        ahead = len(queue.batches) > 0  # the batches ahead are full, and leave now at the earliest
        departed = created if ahead else line.departed
        turn = departed + line.round_trip / self._max_in_flight
        sequences = queue.sequences
        if sequences is not None and sequences.unresolved:
            last = created if ahead else sequences.unresolved[-1].sent_at
            turn = max(turn, last + line.round_trip / sequences.window)
        patient = departed + max(line.round_trip / PATIENCE, SHORTEST)
        if created - line.awaited > AWAITED_FOR and line.fills(self._batch_size, SOON):
            patient = max(patient, created + 2 * SOON)
        if patient > turn and line.expected(patient - created) >= 1.0:
            turn = patient
        # In whole milliseconds of the clock, so that batches of several partitions share a turn and a request.
        return min(max(round(turn * 1000) / 1000, created), created + self._linger)
