"""What a record's time was spent on: the ledger of a time-out.

What happens to one batch (its attempts and back-offs) is booked in its own ledger, which it has from its first retry
on. What batches have in common (no leader, a connection that is down, a full window) is written down once per node and
per partition, when it changes, and looked up when an attempt or the batch has ended. A batch that is delivered at the
first attempt has no ledger, and the entries of a ledger always add up to the time it covers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from aioproducer.producer.partition_queue import PartitionQueue
from aioproducer.producer.reason import Reason
from aioproducer.types import LedgerEntry

V = TypeVar("V")

# Asked for with every request: to look a member of an enumeration up takes a while.
READY: Final = Reason.READY
_LINGER: Final = Reason.LINGER
_NOTHING: Final = Reason.NOTHING

REMEMBERED = 16
"""Values a timeline keeps."""
MAX_ENTRIES = 12
"""Of a ledger; what comes beyond them is added up in the last one."""
OTHER = "other"
FORGOTTEN = "waiting, too long ago to tell for what"

# While one of these holds for the node, what its partitions wait for is not what holds them up.
_FIRST_OF_ALL = frozenset({Reason.NO_LEADER, Reason.LEADER_UNKNOWN, Reason.NOT_CONNECTED, Reason.THROTTLED})


class Timeline(Generic[V]):
    """A value that changes, and its last changes. Before the first it was always what it was then."""

    __slots__ = ("_changes", "_forgotten")

    def __init__(self, value: V) -> None:
        self._changes: list[tuple[float, V]] = [(-math.inf, value)]
        self._forgotten = False

    @property
    def value(self) -> V:
        return self._changes[-1][1]

    def change(self, now: float, value: V) -> None:
        """From ``now`` on, which may not be earlier than the last change, it is ``value``."""
        changes = self._changes
        if value == changes[-1][1]:
            return
        changes.append((now, value))
        if len(changes) > REMEMBERED:
            del changes[0]
            self._forgotten = True

    def spans(self, start: float, end: float) -> Iterator[tuple[V | None, float]]:
        """(value, until when) from ``start`` to ``end`` without gaps; None where the value is forgotten."""
        changes = self._changes
        if end <= start:
            return
        if self._forgotten and start < changes[0][0]:
            yield None, min(changes[0][0], end)
        place = len(changes) - 1  # most look at the last ones only
        while place > 0 and changes[place][0] > start:
            place -= 1
        until = max(start, changes[place][0])
        while until < end:
            value = changes[place][1]
            place += 1
            until = changes[place][0] if place < len(changes) else end
            yield value, min(until, end)


class Ledger:
    """Books time by cause, from ``start`` on and without gaps."""

    __slots__ = ("_entries", "booked_until")

    def __init__(self, start: float) -> None:
        self.booked_until = start
        self._entries: dict[str, tuple[float, int]] = {}

    def copy(self) -> Ledger:
        """Another with the same entries, to be kept on its own."""
        copied = Ledger(self.booked_until)
        copied._entries = dict(self._entries)
        return copied

    def book(self, until: float, cause: str, times: int = 1) -> None:
        """Time up to ``until`` that is not yet booked was spent on this, which occurred this many more times."""
        seconds = max(until - self.booked_until, 0.0)
        self.booked_until = max(until, self.booked_until)
        if cause not in self._entries and len(self._entries) >= MAX_ENTRIES - 1:
            cause = OTHER
        before, count = self._entries.get(cause, (0.0, 0))
        self._entries[cause] = (before + seconds, count + times)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """In the order in which they first came up."""
        return tuple(LedgerEntry(cause, seconds, count) for cause, (seconds, count) in self._entries.items())


class WaitHistory:
    """What batches waited for that was not of their own making: by node, and for each partition in its queue.

    ``node_is`` and ``reachable`` are told what is; a queue's ``history`` is a timeline of its leader and what its head
    waited for, and exists only once there was something to tell.
    """

    def __init__(self) -> None:
        self._nodes: dict[int, Timeline[Reason]] = {}
        self._reachable = Timeline(False)

    def node_is(self, node: int, now: float, reason: Reason) -> None:
        """What requests to this node wait for from now on: READY if nothing."""
        timeline = self._nodes.get(node)
        if timeline is None:
            self._nodes[node] = Timeline(reason)
        else:
            timeline.change(now, reason)

    def reachable(self, now: float, *, any_broker: bool) -> None:
        """Whether there is a connection to any broker."""
        self._reachable.change(now, any_broker)

    def spend_in_queue(self, ledger: Ledger, queue: PartitionQueue, until: float, last_error: str = "") -> None:
        """Books what a batch waited for in its queue; back-offs count as time of its own last error, if it had one."""
        own: Timeline[tuple[int, Reason]] = queue.history or Timeline((queue.leader, Reason.READY))
        for value, end in own.spans(ledger.booked_until, until):
            if value is None:
                ledger.book(end, FORGOTTEN)
                continue
            node, waiting = value
            timeline = self._nodes.get(node, _READY)
            for reason, upto in timeline.spans(ledger.booked_until, end):
                if reason is None:
                    ledger.book(upto, FORGOTTEN)
                elif (weightier := _weightier(reason, waiting)) is Reason.BACKOFF and last_error:
                    ledger.book(upto, last_error, times=0)
                else:
                    ledger.book(upto, weightier.value)

    def spend_on_metadata(self, ledger: Ledger, until: float, cause: str, times: int) -> None:
        """Books the time without metadata: for ``cause``, which came up so often, while there was a broker to ask."""
        for reachable, end in self._reachable.spans(ledger.booked_until, until):
            if reachable is False:
                ledger.book(end, Reason.NO_BROKER.value)
            else:
                ledger.book(end, cause, times)
                times = 0


_READY: Timeline[Reason] = Timeline(Reason.READY)


def _weightier(node: Reason, queue: Reason) -> Reason:
    return node if node in _FIRST_OF_ALL or queue is Reason.READY else queue


def note_wait(queue: PartitionQueue, now: float, reason: Reason) -> None:
    """What the head of the queue waits for from now on: READY if nothing."""
    if reason is _LINGER or reason is _NOTHING:
        if reason is _NOTHING and queue.in_flight == 0:
            queue.history = None  # nobody is left to ask for it
        return
    if queue.history is None:
        if reason is READY:
            return
        queue.history = Timeline((queue.leader, READY))
    queue.history.change(now, (queue.leader, reason))


def note_leader(queue: PartitionQueue, now: float, old: int) -> None:
    """The queue's leader is another one now; of no interest if nothing waits in it."""
    if queue.depth() == 0 and queue.in_flight == 0:
        queue.history = None
        return
    if queue.history is None:
        queue.history = Timeline((old, Reason.READY))
    queue.history.change(now, (queue.leader, queue.history.value[1]))


def in_words(entries: tuple[LedgerEntry, ...]) -> str:
    """``34 s no leader, 86 s NOT_ENOUGH_REPLICAS x3``; what took less than a millisecond is left out."""
    told = [entry for entry in entries if entry.seconds >= 0.001] or list(entries)
    return ", ".join(
        f"{duration(entry.seconds)} {entry.cause}" + (f" x{entry.count}" if entry.count > 1 else "") for entry in told
    )


def duration(seconds: float) -> str:
    """As somebody would say it: ``420 ms``, ``3.4 s``, ``86 s``."""
    if seconds < 1:
        return f"{max(seconds, 0.0) * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
