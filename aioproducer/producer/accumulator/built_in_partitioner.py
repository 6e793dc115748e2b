"""Chooses partitions for records without key or partition (KIP-480, KIP-794, KIP-1123).

A topic stays with one partition until a batch is full, then draws the next: the shorter the queue of a partition, the
likelier. Kafka's Sender counts all queues of all topics in each pass. Here a draw counts only the queues that hold
batches: all empty ones between two of them are one row of the table. So a draw costs the same however many partitions
there are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from aioproducer.producer.accumulator.partition_queue import PartitionQueue

if TYPE_CHECKING:
    from random import Random

QUEUES_PER_DRAW: Final = 4
"""A table of the loads of n queues serves n / 4 draws and is then made anew: few queues have changed by then, and each
draw pays for four."""

_LEFT_OUT: Final = -1


@final
class LoadTable:
    """Partitions by how much shorter their queues are than the longest: a cumulative frequency table.

    ``heaviest`` is the weight of an empty queue.
    """

    def __init__(self, partitions: list[PartitionQueue], heaviest: i64) -> None:
        self.total: i64 = 0
        """Numbers from 0 to below this map to partitions."""
        self._partitions = partitions
        self._heaviest = heaviest
        self._ends: list[int] = []
        self._firsts: list[int] = []

    def add_empty(self, first: i64, after: i64) -> None:
        """A row for the empty queues from position ``first`` to before ``after``."""
        if first < after:
            self.total += (after - first) * self._heaviest
            self._ends.append(self.total)
            self._firsts.append(first)

    def add(self, place: i64, weight: i64) -> None:
        """A row for the queue at this position."""
        self.total += weight
        self._ends.append(self.total)
        self._firsts.append(place)

    def partition(self, number: i64) -> PartitionQueue:
        """The partition that a number maps to."""
        row = bisect_right(self._ends, number)
        begin: i64 = self._ends[row - 1] if row > 0 else 0
        first: i64 = self._firsts[row]
        return self._partitions[first + (number - begin) // self._heaviest]


def load_table(partitions: list[PartitionQueue], busy: list[PartitionQueue], unavailable: Collection[int]) -> LoadTable:
    """A partition's weight is the length of the longest queue, less that of its own, plus one: ``PartitionQueue.load``.

    Both lists are in order of partition; ``busy`` has all queues that hold batches, and maybe others. Queues with
    batches for an unavailable node are left out. Empty ones are not: a record must find out that the node is back.
    """
    places: list[int] = []
    depths: list[int] = []
    longest: i64 = 0
    all_available = len(unavailable) == 0
    for queue in busy:
        depth = queue.load()
        if depth == 0:
            continue
        place = _place(partitions, queue)
        if place < 0:
            continue
        if not all_available and queue.leader in unavailable:
            depth = _LEFT_OUT
        elif depth > longest:
            longest = depth
        places.append(place)
        depths.append(depth)
    table = LoadTable(partitions, longest + 1)
    after: i64 = 0
    for i in range(len(places)):
        place = places[i]
        depth = depths[i]
        table.add_empty(after, place)
        if depth != _LEFT_OUT:
            table.add(place, longest + 1 - depth)
        after = place + 1
    table.add_empty(after, len(partitions))
    return table


def _place(partitions: list[PartitionQueue], queue: PartitionQueue) -> i64:
    """The index of the queue in a list that is in order of partition; -1 if it is not in it."""
    number = queue.partition
    size: i64 = len(partitions)
    if number < size and partitions[number] is queue:  # while no partition lacks a leader
        return number
    low: i64 = 0
    high = size
    while low < high:
        middle = (low + high) // 2
        if partitions[middle].partition < number:
            low = middle + 1
        else:
            high = middle
    return low if low < size and partitions[low] is queue else -1


def _none() -> Collection[int]:
    return ()


@final
class Partitioning:
    """State shared by the partitioners of all topics.

    ``unavailable`` returns the nodes to leave out for now (partitioner.availability.timeout.ms).
    """

    def __init__(
        self, random: Random, *, adaptive: bool = True, unavailable: Callable[[], Collection[int]] = _none
    ) -> None:
        self.adaptive = adaptive
        self.unavailable = unavailable
        self.in_rack: Collection[int] = ()
        """The nodes to prefer (partitioner.rack.aware)."""
        self._random = random

    def draw(self, limit: i64) -> i64:
        """A random number from 0 to below ``limit``."""
        return i64(self._random.random() * float(limit))


@final
class BuiltInPartitioner:
    """The current partition of a topic, and the choice of the next."""

    def __init__(self, shared: Partitioning) -> None:
        self.current: PartitionQueue | None = None
        self.produced: i64 = 0
        """Bytes appended to the current partition since it was chosen."""
        self._shared = shared
        self._all: list[PartitionQueue] = []
        self._with_leader: list[PartitionQueue] = []
        self._in_rack: list[PartitionQueue] = []
        self._stale = True
        self._unused: i64 = 0
        self._busy: list[int] = []
        self._table: LoadTable | None = None
        self._good_for: i64 = 0

    def follow(self, queues: list[PartitionQueue]) -> None:
        """Sets the topic's partitions."""
        self._all = queues
        self._stale = True
        current = self.current
        if current is not None and _place(queues, current) < 0:
            self.current = None

    def leaders_changed(self) -> None:
        """Partitions have found or lost their leader, or it is in another rack; the next draw rebuilds the table."""
        self._stale = True

    def opened(self, queue: PartitionQueue) -> None:
        """A batch was begun in the queue."""
        if not queue.used:
            queue.used = True
            self._unused -= 1
        if not queue.busy:
            queue.busy = True
            self._busy.append(queue.partition)

    def produced_more(self, size: i64, batch_size: i64) -> None:
        """Counts bytes appended to the current partition. After two batches' worth the partitioner leaves it, even if
        no batch is full by then, as when records with keys open batches, too."""
        self.produced += size
        if self.produced >= 2 * batch_size:
            self.current = None

    def next(self) -> PartitionQueue:
        """Chooses the next partition."""
        if self._stale:
            self._look_at_leaders()
        shared = self._shared
        table = self._loads() if shared.adaptive else None
        if table is None:
            partitions = self._in_rack or self._with_leader or self._all
            chosen = partitions[shared.draw(len(partitions))]
        else:
            chosen = table.partition(shared.draw(table.total))
        self.current = chosen
        self.produced = 0
        return chosen

    def _look_at_leaders(self) -> None:
        in_rack = self._shared.in_rack
        self._with_leader = [queue for queue in self._all if queue.leader >= 0]
        self._in_rack = [queue for queue in self._with_leader if queue.leader in in_rack]
        self._unused = len([None for queue in self._all if not queue.used])
        self._good_for = 0
        self._stale = False

    def _loads(self) -> LoadTable | None:
        """The present table; None if there is nothing to weigh."""
        if self._good_for > 0:
            self._good_for -= 1
        else:
            self._count()
        return self._table

    def _count(self) -> None:
        queues = self._all
        numbers = self._busy
        numbers.sort()
        self._busy = []
        busy: list[PartitionQueue] = []
        for number in numbers:
            if number >= len(queues):
                break  # the topic has fewer partitions now
            queue = queues[number]
            if busy and busy[-1] is queue:
                continue  # the partition had disappeared and is back
            # With a batch under way it stays: a retry returns to the queue without being opened.
            queue.busy = queue.in_flight > 0 or queue.depth() > 0
            if queue.busy:
                self._busy.append(number)
                busy.append(queue)
        self._good_for = len(busy) // QUEUES_PER_DRAW
        self._table = None
        if self._unused > 0 or not busy:  # as in Kafka: no weighing before every partition had a batch
            return
        unavailable = self._shared.unavailable()
        for partitions in (self._in_rack, self._with_leader):
            if partitions:
                table = load_table(partitions, busy, unavailable)
                if table.total > 0:
                    self._table = table
                    return
