"""All batches that have not ended, in the order they were created.

Adding, removing and replacing a batch cost the same however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from mypy_extensions import i64, mypyc_attr

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch


# It refers to batches and not to entries: with those it would form cycles, which the garbage collector does not see.
@final
@mypyc_attr(acyclic=True)
class _Entry:
    """A batch's queue, and the batches before and behind it."""

    __slots__ = ("newer", "number", "older", "queue")

    def __init__(self, queue: PartitionQueue, number: i64) -> None:
        self.queue = queue
        self.number = number
        self.older: ProducerBatch | None = None
        self.newer: ProducerBatch | None = None


@final
class IncompleteBatches:
    """Kafka's class of this name: a doubly linked list, and each batch's node in it."""

    __slots__ = ("_entries", "_newest", "count", "oldest", "topics")

    def __init__(self) -> None:
        self._entries: dict[ProducerBatch, _Entry] = {}
        self._newest: ProducerBatch | None = None
        self.oldest: ProducerBatch | None = None
        """The oldest batch; None if there is none."""
        self.count: i64 = 0
        """How many batches there have been. Later ones have larger numbers, and parts have that of the whole."""
        self.topics: dict[str, int] = {}
        """How many of the batches are each topic's; topics without one are not in it."""

    def add(self, batch: ProducerBatch, queue: PartitionQueue) -> None:
        """A new batch, the newest."""
        self.count += 1
        self._insert(batch, queue, self._newest, self.count)

    def oldest_of_first(self, count: int, behind: ProducerBatch | None = None) -> ProducerBatch | None:
        """The oldest of the first ``count`` batches. If ``behind`` has not ended, the search starts after it."""
        first = self.oldest
        if behind is not None and behind in self._entries:
            first = self._entries[behind].newer
        return None if first is None or self._entries[first].number > count else first

    def remove(self, batch: ProducerBatch) -> None:
        """Removes a batch that has ended; harmless if it was removed before."""
        entry = self._entries.pop(batch, None)
        if entry is None:
            return
        topic = entry.queue.topic
        left = self.topics[topic] - 1
        if left:
            self.topics[topic] = left
        else:
            del self.topics[topic]
        older, newer = entry.older, entry.newer
        if older is None:
            self.oldest = newer
        else:
            self._entries[older].newer = newer
        if newer is None:
            self._newest = older
        else:
            self._entries[newer].older = older

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replaces a batch by its parts, which are as old."""
        whole = self._entries[batch]
        place = whole.older
        self.remove(batch)
        for part in parts:
            self._insert(part, whole.queue, place, whole.number)
            place = part

    def join(self, parts: list[ProducerBatch], whole: ProducerBatch) -> None:
        """Replaces batches by one that is as old as the first of them."""
        self.replace(parts[0], [whole])
        for part in parts:
            self.remove(part)

    def _insert(self, batch: ProducerBatch, queue: PartitionQueue, older: ProducerBatch | None, number: i64) -> None:
        """Inserts behind ``older``; at the front if that is None."""
        entry = self._entries[batch] = _Entry(queue, number)
        self.topics[queue.topic] = self.topics.get(queue.topic, 0) + 1
        entry.older = older
        if older is None:
            newer = self.oldest
            self.oldest = batch
        else:
            before = self._entries[older]
            newer = before.newer
            before.newer = batch
        entry.newer = newer
        if newer is None:
            self._newest = batch
        else:
            self._entries[newer].older = batch

    def queue_of(self, batch: ProducerBatch) -> PartitionQueue:
        """The queue of a batch that has not ended."""
        return self._entries[batch].queue

    def items(self) -> list[tuple[ProducerBatch, PartitionQueue]]:
        """Each batch with its queue, oldest first; a copy."""
        found: list[tuple[ProducerBatch, PartitionQueue]] = []
        batch = self.oldest
        while batch is not None:
            entry = self._entries[batch]
            found.append((batch, entry.queue))
            batch = entry.newer
        return found

    def queues(self) -> list[PartitionQueue]:
        """The queues with such batches, in the order of their oldest."""
        return list(dict.fromkeys([queue for _, queue in self.items()]))

    def __iter__(self) -> Iterator[ProducerBatch]:
        return iter([batch for batch, _ in self.items()])

    def __len__(self) -> int:
        return len(self._entries)
