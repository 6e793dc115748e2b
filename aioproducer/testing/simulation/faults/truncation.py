"""Cuts off the end of a log, as the election of a replica that has not copied it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aioproducer.broker import Partition, PartitionLog
from aioproducer.broker.log.batch_store import MemoryBatches
from aioproducer.broker.log.producer_state import NO_PRODUCER_ID
from aioproducer.records.record_batch import RecordBatch


class _Copied(MemoryBatches):
    """The batches that the replica has copied."""

    def load(self, log_start_offset: int) -> Iterator[RecordBatch]:
        return map(RecordBatch, self)


def may_be_cut_off(log: PartitionLog, most: int) -> list[RecordBatch]:
    """The last batches, up to a number, without which the log still knows all of their producers.

    A log that has forgotten a producer accepts any of its batches as the first one, so no producer could keep batches
    that are in flight together in order there.
    """
    batches = list(log.batches())
    for count in range(min(most, len(batches)), 0, -1):
        known = {batch.producer_id for batch in batches[:-count]}
        if known.issuperset(batch.producer_id for batch in batches[-count:] if batch.producer_id > NO_PRODUCER_ID):
            return batches[-count:]
    return []


def cut_off(partition: Partition, lost: Sequence[RecordBatch]) -> None:
    """Gives the partition another log, without these batches, which are its last ones. Replicas that copied more of the
    former log cut it off, too."""
    before = partition.log
    kept = list(before.batches())[: -len(lost)]
    log = PartitionLog(before.name, before.config, _Copied(bytearray(batch.data) for batch in kept))
    log.recover(before.log_start_offset, before.producer_state.snapshot())
    end = log.log_end_offset
    if before.replicated_to is not None:
        log.replicated_to = min(before.replicated_to, end)
    for node, replica in partition.held.items():
        partition.held[node] = replica._replace(log_end_offset=min(replica.log_end_offset, end))
    partition.log = log
