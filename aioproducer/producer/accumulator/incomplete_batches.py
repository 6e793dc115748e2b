"""All batches that have not ended, in the order they were created.

Adding, removing and replacing a batch cost the same however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch


@final
class _Entry:
    """A batch, its queue, and the batches before and behind it."""

    __slots__ = ("batch", "newer", "older", "queue")

    def __init__(self, batch: ProducerBatch, queue: PartitionQueue) -> None:
        self.batch = batch
        self.queue = queue
        self.older: _Entry | None = None
        self.newer: _Entry | None = None


@final
class IncompleteBatches:
    """Kafka's class of this name: a doubly linked list, and each batch's node in it."""

    __slots__ = ("_entries", "_newest", "_oldest", "oldest")

    def __init__(self) -> None:
        self._entries: dict[ProducerBatch, _Entry] = {}
        self._oldest: _Entry | None = None
        self._newest: _Entry | None = None
        self.oldest: ProducerBatch | None = None
        """The oldest batch; None if there is none."""

    def add(self, batch: ProducerBatch, queue: PartitionQueue) -> None:
        """A new batch, the newest."""
        entry = _Entry(batch, queue)
        newest = self._newest
        if newest is None:
            self._oldest = entry
            self.oldest = batch
        else:
            newest.newer = entry
            entry.older = newest
        self._newest = entry
        self._entries[batch] = entry

    def remove(self, batch: ProducerBatch) -> None:
        """Removes a batch that has ended; harmless if it was removed before."""
        entry = self._entries.pop(batch, None)
        if entry is None:
            return
        older, newer = entry.older, entry.newer
        if older is None:
            self._oldest = newer
            self.oldest = None if newer is None else newer.batch
        else:
            older.newer = newer
        if newer is None:
            self._newest = older
        else:
            newer.older = older
        entry.older = entry.newer = None

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replaces a batch by its parts, which are as old."""
        whole = self._entries[batch]
        place = whole.older
        queue = whole.queue
        self.remove(batch)
        for part in parts:
            entry = _Entry(part, queue)
            self._insert(entry, place)
            place = entry

    def join(self, parts: list[ProducerBatch], whole: ProducerBatch) -> None:
        """Replaces batches by one that is as old as the first of them."""
        self.replace(parts[0], [whole])
        for part in parts:
            self.remove(part)

    def _insert(self, entry: _Entry, older: _Entry | None) -> None:
        """Inserts behind ``older``; at the front if that is None."""
        self._entries[entry.batch] = entry
        entry.older = older
        if older is None:
            newer = self._oldest
            self._oldest = entry
            self.oldest = entry.batch
        else:
            newer = older.newer
            older.newer = entry
        entry.newer = newer
        if newer is None:
            self._newest = entry
        else:
            newer.older = entry

    def queue_of(self, batch: ProducerBatch) -> PartitionQueue:
        """The queue of a batch that has not ended."""
        return self._entries[batch].queue

    def items(self) -> list[tuple[ProducerBatch, PartitionQueue]]:
        """Each batch with its queue, oldest first; a copy."""
        found: list[tuple[ProducerBatch, PartitionQueue]] = []
        entry = self._oldest
        while entry is not None:
            found.append((entry.batch, entry.queue))
            entry = entry.newer
        return found

    def queues(self) -> list[PartitionQueue]:
        """The queues with such batches, in the order of their oldest."""
        return list(dict.fromkeys([queue for _, queue in self.items()]))

    def __iter__(self) -> Iterator[ProducerBatch]:
        return iter([batch for batch, _ in self.items()])

    def __len__(self) -> int:
        return len(self._entries)
