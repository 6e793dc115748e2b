from __future__ import annotations

from aioproducer.broker import Partition, PartitionLog
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.state.topic import HeldReplica
from aioproducer.records.record_batch import RecordBatch
from aioproducer.testing.simulation.faults.truncation import cut_off, may_be_cut_off
from tests.broker.raw_clients.batches import NOW_MS, make_batch


def partition_with(*batches: tuple[int, int, int]) -> Partition:
    """Of batches of two records, with these producer ids, epochs and sequences."""
    log = PartitionLog("t-0", TopicConfig.of({}, BrokerConfig.of({})))
    for batch in batches:
        append(log, *batch)
    return Partition("t", 0, (0,), log, leader=0)


def append(log: PartitionLog, producer_id: int, epoch: int, sequence: int) -> None:
    data = make_batch(b"a", b"b", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    log.append(RecordBatch(data), leader_epoch=0, now_ms=NOW_MS)


def offsets(batches: list[RecordBatch]) -> list[int]:
    return [batch.base_offset for batch in batches]


def test_the_last_batches_are_cut_off_as_far_as_their_producers_stay_known() -> None:
    log = partition_with((1, 0, 0), (1, 0, 2), (2, 0, 0), (2, 0, 2), (1, 1, 0), (2, 0, 4)).log
    assert offsets(may_be_cut_off(log, 1)) == [10]
    assert offsets(may_be_cut_off(log, 3)) == [6, 8, 10]
    assert offsets(may_be_cut_off(log, 4)) == [6, 8, 10]
    assert may_be_cut_off(partition_with((1, 0, 0)).log, 4) == []
    assert may_be_cut_off(partition_with().log, 4) == []


def test_without_producer_ids_all_may_be_cut_off() -> None:
    assert offsets(may_be_cut_off(partition_with((-1, -1, -1), (-1, -1, -1)).log, 4)) == [0, 2]


def test_the_log_goes_on_where_it_was_cut_off_and_knows_what_it_knew_then() -> None:
    partition = partition_with((1, 0, 0), (1, 0, 2), (1, 0, 4), (1, 1, 0))
    before = partition.log
    cut_off(partition, may_be_cut_off(before, 2))
    log = partition.log
    assert log is not before
    assert (log.log_end_offset, log.high_watermark) == (4, 4)
    assert [record.offset for record in log.records()] == [0, 1, 2, 3]
    entry = log.producer_state.entry(1)
    assert entry is not None
    assert (entry.producer_epoch, entry.last_sequence) == (0, 3)
    append(log, 1, 0, 4)
    assert offsets(list(log.batches())) == [0, 2, 4]


def test_deleted_records_stay_deleted_and_their_producers_known() -> None:
    partition = partition_with((2, 0, 0), (1, 0, 0), (1, 0, 2))
    partition.log.delete_records(3)
    cut_off(partition, may_be_cut_off(partition.log, 1))
    assert (partition.log.log_start_offset, partition.log.log_end_offset) == (3, 4)
    assert [record.offset for record in partition.log.records() if record.offset >= 3] == [3]
    assert partition.log.producer_state.entry(2) is not None


def test_no_replica_keeps_what_was_cut_off() -> None:
    partition = partition_with((1, 0, 0), (1, 0, 2), (1, 0, 4))
    partition.replicas = (0, 1, 2)
    partition.held = {1: HeldReplica(6, 0, in_sync=True), 2: HeldReplica(2, 0, in_sync=False)}
    partition.replicate([0, 1])
    assert partition.log.high_watermark == 6
    cut_off(partition, may_be_cut_off(partition.log, 1))
    assert partition.log.high_watermark == 4
    partition.replicate([0, 1])
    assert partition.log.high_watermark == 4
    assert [replica.log_end_offset for replica in partition.held.values()] == [4, 2]
