"""A log that loses its end, as when a replica is elected that has not copied it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aioproducer.broker import Partition, PartitionLog
from aioproducer.broker.log.batch_store import MemoryBatches
from aioproducer.broker.log.producer_state import NO_PRODUCER_ID
from aioproducer.records.record_batch import RecordBatch


class _Copied(MemoryBatches):
    """What the replica has copied."""

    def load(self, log_start_offset: int) -> Iterator[RecordBatch]:
        return map(RecordBatch, self)


def may_be_cut_off(log: PartitionLog, most: int) -> list[RecordBatch]:
    """The last batches, at most so many, without which the log still knows all of their producers.

    A log that has lost all it knew of a producer takes any of its batches for the first one, and no producer could
    keep its batches in order there that are under way together.
    """
    batches = list(log.batches())
    for count in range(min(most, len(batches)), 0, -1):
        known = {batch.producer_id for batch in batches[:-count]}
        if known.issuperset(batch.producer_id for batch in batches[-count:] if batch.producer_id > NO_PRODUCER_ID):
            return batches[-count:]
    return []


def cut_off(partition: Partition, lost: Sequence[RecordBatch]) -> None:
    """The partition has another log, without these batches, which are its last ones."""
    before = partition.log
    kept = list(before.batches())[: -len(lost)]
    log = PartitionLog(before.name, before.config, _Copied(bytearray(batch.data) for batch in kept))
    log.recover(before.log_start_offset, before.producer_state.snapshot())
    partition.log = log
