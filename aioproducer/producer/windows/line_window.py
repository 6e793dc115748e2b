"""Limits the requests to a node that are unanswered at once, where more of them would only make batches small.

Several requests on their way make up for the distance of a broker. They do not make it work faster: Kafka handles the
requests of a connection one after the other, and each batch costs it about the same, small or large. So where an answer
takes long because of work, further requests only wait at the broker, and the batches in them could have grown instead.
Small batches then wait for an answer, as Nagle's algorithm lets small segments of TCP wait (RFC 896).

The distance is known from the first answer of the connection, which costs the broker little, and from requests: what
one takes beyond WORK for each batch that is unanswered when it leaves counts as distance. The window is its share, in
the time to an answer, of ``max.in.flight.requests.per.connection``. It does not count where batches are full anyway,
nor where all records are awaited, since their senders send nothing meanwhile, nor when an answer is overdue: the broker
may then be waiting for something that does not delay other requests.
"""

from __future__ import annotations

from typing import Final, final

WORK: Final = 0.0001
"""Seconds that a broker may take for a batch. Kafka takes a third of that on one core of 2026; one that takes longer
seems distant, and gets more requests."""

OVERDUE: Final = 2.0
"""An answer is overdue after this many times the average."""

GAIN: Final = 0.125
"""The weight of the newest observation in an average, as TCP has it for round trips (RFC 6298)."""

DOUBT: Final = 0.02
"""The weight of the first answer of the connection, each time that nothing says that the distance is still longer."""


@final
class LineWindow:
    """The window of one node. Times are in seconds, of the loop's clock; averages weigh the newest by GAIN."""

    def __init__(self, most: int, full: int) -> None:
        """``most``: max.in.flight.requests.per.connection; ``full``: batch.size."""
        self.places: int = most
        """The requests that may be unanswered before small batches wait."""
        self.unanswered: int = 0
        self.round_trip: float = 0.0
        """The average time from a request to its answer; 0 before the first."""
        self.distance: float = 0.0
        """The part of it that is not the broker's work; 0 as long as it is unknown."""
        self._most = most
        self._full = float(full)
        self._greeting: float = 0.0
        self._batch_size: float = 0.0
        self._departed: float = 0.0
        self._batches: int = 0

    def connected(self, greeting: float) -> None:
        """There is a connection, whose first answer took ``greeting`` seconds."""
        if self.distance == 0.0:
            self.distance = self._greeting = greeting

    def connection_lost(self) -> None:
        """The next one may take another way."""
        self.distance = self._greeting = self.round_trip = 0.0
        self.places = self._most

    def sent(self, batches: int, size: int, now: float) -> int:
        """A request leaves with this many batches, of so many uncompressed bytes together. Returns how many batches are
        unanswered with these."""
        mean = size / batches
        self._batch_size += (GAIN if self._batch_size else 1.0) * (mean - self._batch_size)
        self._departed = now
        self.unanswered += 1
        self._batches += batches
        return self._batches

    def failed(self, batches: int) -> None:
        """A request ended without an answer."""
        self.unanswered -= 1
        self._batches -= batches

    def answered(self, took: float, batches: int, *, work: int) -> None:
        """A request of so many batches was answered; ``work`` is what :meth:`sent` returned."""
        self.unanswered -= 1
        self._batches -= batches
        self.round_trip += (GAIN if self.round_trip else 1.0) * (took - self.round_trip)
        if took < self.distance or self.distance == 0.0:
            self.distance = took
        elif took - WORK * work > self.distance:
            self.distance += GAIN * (took - WORK * work - self.distance)
        elif self.distance > self._greeting:
            self.distance += DOUBT * (self._greeting - self.distance)
        if self._batch_size >= self._full or self.round_trip <= 0.0:
            self.places = self._most
        else:
            self.places = max(1, round(self._most * min(self.distance / self.round_trip, 1.0)))

    def opens_at(self) -> float:
        """When one more request may leave; 0 for at once."""
        return 0.0 if self.unanswered < self.places else self._departed + OVERDUE * self.round_trip
