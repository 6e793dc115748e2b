"""The state of the idempotent producers of a partition, which distinguishes retried batches from new ones.

It follows ``ProducerStateManager``, ``ProducerStateEntry`` and ``ProducerAppendInfo`` of Apache Kafka 4.3. For each
producer id it keeps the latest epoch and the last batches: five, or as many as ``producer.state.batches.to.retain``
says (KIP-1269). A batch with the epoch and sequence range of a kept batch is a duplicate, and is answered with the
offsets of the first one. Any other batch must continue the sequence without a gap. A duplicate of a batch that is no
longer kept looks like a gap: Kafka answers ``OUT_OF_ORDER_SEQUENCE_NUMBER`` for it (its broker never answers
``DUPLICATE_SEQUENCE_NUMBER``), and so does this one.

Simplification: the entries of silent producers do not expire (Kafka's ``producer.id.expiration.ms``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from aioproducer.errors import InvalidProducerEpochException, OutOfOrderSequenceException
from aioproducer.records.batch_layout import decrement_sequence, increment_sequence

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_COORDINATOR_EPOCH = -1
NUM_BATCHES_TO_RETAIN = 5
"""How many batches every broker before KIP-1269 keeps."""


class BatchMetadata(NamedTuple):
    """A kept batch. ``timestamp`` is its largest, in milliseconds."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerStateEntry:
    """The latest epoch of one producer id in one partition, and its last batches in that epoch, oldest first."""

    __slots__ = ("batches", "coordinator_epoch", "producer_epoch")

    def __init__(self) -> None:
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.batches: list[BatchMetadata] = []  # a deque takes 600 bytes more, and markers alone make many entries

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def find_duplicate(
        self, producer_epoch: int, first_sequence: int, last_sequence: int, within: int
    ) -> BatchMetadata | None:
        if producer_epoch != self.producer_epoch:
            return None
        for kept in islice(reversed(self.batches), within):
            if kept.last_sequence == last_sequence and kept.first_sequence == first_sequence:
                return kept
        return None

    def begin_epoch(self, producer_epoch: int) -> None:
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch

    def add_batch(self, producer_epoch: int, batch: BatchMetadata, retain: int) -> None:
        self.begin_epoch(producer_epoch)
        self.batches.append(batch)
        self.retain(retain)

    def retain(self, count: int) -> None:
        if len(self.batches) > count:
            del self.batches[:-count]


ProducerSnapshot = tuple[int, int, int, Sequence[tuple[int, int, int, int]]]
"""The state of a producer: its id, its epoch, the coordinator's epoch, and the fields of its batches."""


class ProducerStateManager:
    """The producers of one partition. Before an append the log calls :meth:`find_duplicate` and :meth:`validate`, after
    it :meth:`update`."""

    def __init__(self) -> None:
        self._entries: dict[int, ProducerStateEntry] = {}

    def entries(self) -> Mapping[int, ProducerStateEntry]:
        """By producer id."""
        return self._entries

    def entry(self, producer_id: int) -> ProducerStateEntry | None:
        return self._entries.get(producer_id)

    def find_duplicate(
        self,
        producer_id: int,
        producer_epoch: int,
        first_sequence: int,
        last_sequence: int,
        within: int = NUM_BATCHES_TO_RETAIN,
    ) -> BatchMetadata | None:
        """The batch that this one repeats, if it is one of the last ``within`` batches."""
        entry = self._entries.get(producer_id)
        return None if entry is None else entry.find_duplicate(producer_epoch, first_sequence, last_sequence, within)

    def validate(self, producer_id: int, producer_epoch: int, first_sequence: int) -> None:
        """Raises unless a batch that is no duplicate may follow the last batch of this producer.

        An unknown producer may begin with any sequence: its earlier batches may have been deleted.
        """
        entry = self._entries.get(producer_id)
        if entry is None:
            return
        known = entry.producer_epoch
        if producer_epoch < known:
            raise InvalidProducerEpochException(
                f"producer {producer_id} wrote with epoch {producer_epoch}, older than its last epoch {known}"
            )
        if producer_epoch > known:
            if first_sequence != 0:
                raise OutOfOrderSequenceException(
                    f"producer {producer_id} began epoch {producer_epoch} with sequence {first_sequence} instead of 0 "
                    f"(its epoch so far was {known})"
                )
        elif first_sequence != increment_sequence(entry.last_sequence, 1):
            raise OutOfOrderSequenceException(
                f"producer {producer_id} (epoch {producer_epoch}) wrote sequence {first_sequence} after "
                f"{entry.last_sequence}"
            )

    def update(
        self, producer_id: int, producer_epoch: int, batch: BatchMetadata, retain: int = NUM_BATCHES_TO_RETAIN
    ) -> None:
        """Remembers an appended batch, and keeps ``retain`` batches in all."""
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerStateEntry()
        entry.add_batch(producer_epoch, batch, retain)

    def retain(self, count: int) -> None:
        """Forgets all but the last ``count`` batches of each producer. A retry of an older one then looks like a
        gap."""
        for entry in self._entries.values():
            entry.retain(count)

    def expire(self, producer_id: int | None = None) -> None:
        """Forgets this producer, or all producers; their next batches are treated as those of unknown producers."""
        if producer_id is None:
            self._entries.clear()
        else:
            self._entries.pop(producer_id, None)

    def forget_all_but_last(self) -> None:
        """Keeps only the last batch of each producer, as a snapshot of Kafka does."""
        for entry in self._entries.values():
            entry.retain(1)

    def transaction_ended(self, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> None:
        """A marker was appended. A marker with a later epoch (KIP-890) begins that epoch, and sequences begin anew."""
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerStateEntry()
        entry.begin_epoch(producer_epoch)
        entry.coordinator_epoch = coordinator_epoch

    # restarts

    def snapshot(self) -> list[ProducerSnapshot]:
        """The state of all producers, for :meth:`restore` after a restart."""
        return [
            (producer_id, entry.producer_epoch, entry.coordinator_epoch, list(entry.batches))
            for producer_id, entry in self._entries.items()
        ]

    def restore(self, snapshot: Iterable[ProducerSnapshot], log_end_offset: int, retain: int) -> None:
        """Adds the snapshot's batches, which may be deleted from the log, to those that were read from the log.

        A batch of the snapshot beyond the end of the log was never written, and is left out.
        """
        for producer_id, producer_epoch, coordinator_epoch, known in snapshot:
            batches = [kept for kept in (BatchMetadata(*one) for one in known) if kept.last_offset < log_end_offset]
            entry = self._entries.get(producer_id)
            if entry is None:
                if known and not batches:
                    continue
                entry = self._entries[producer_id] = ProducerStateEntry()
                entry.begin_epoch(producer_epoch)
                entry.coordinator_epoch = coordinator_epoch
            if entry.producer_epoch == producer_epoch:
                first = entry.batches[0].first_offset if entry.batches else log_end_offset
                entry.batches[:0] = [kept for kept in batches if kept.last_offset < first]
                entry.retain(retain)
