from __future__ import annotations

import pytest

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.handlers.leader_epoch import check_leader_epoch, diverging_epoch
from aioproducer.broker.log.leader_epochs import EpochEndOffset
from aioproducer.broker.log.partition_log import PartitionLog
from aioproducer.broker.state.topic import Partition
from aioproducer.errors import FencedLeaderEpochException, OffsetOutOfRangeException, UnknownLeaderEpochException
from aioproducer.records.record_batch import RecordBatch
from tests.broker.raw_clients.batches import NOW_MS, make_batch


def test_only_the_current_epoch_will_do() -> None:
    log = PartitionLog("t-0", TopicConfig.of({}, BrokerConfig.of({})))
    partition = Partition("t", 0, (0,), log, leader=0, leader_epoch=4)
    check_leader_epoch(partition, -1)
    check_leader_epoch(partition, 4)
    with pytest.raises(FencedLeaderEpochException):
        check_leader_epoch(partition, 3)
    with pytest.raises(UnknownLeaderEpochException):
        check_leader_epoch(partition, 5)


def test_the_offset_at_which_client_and_log_diverge_is_found() -> None:
    """The client has read up to offset 5 in epoch 1; then the log was cut at 3, and epoch 4 begins there."""
    log = PartitionLog("t-0", TopicConfig.of({}, BrokerConfig.of({})))
    for epoch in (1, 1, 1, 4):
        log.append(RecordBatch(make_batch(b"x")), leader_epoch=epoch, now_ms=NOW_MS)
    partition = Partition("t", 0, (0,), log, leader=0, leader_epoch=4)
    assert diverging_epoch(partition, 5, -1) is None
    assert [diverging_epoch(partition, offset, 1) for offset in range(4)] == [None] * 4
    assert diverging_epoch(partition, 4, 1) == diverging_epoch(partition, 5, 1) == EpochEndOffset(1, 3)
    assert diverging_epoch(partition, 4, 4) is None
    assert diverging_epoch(partition, 5, 4) == EpochEndOffset(4, 4)
    assert diverging_epoch(partition, 3, 2) == EpochEndOffset(1, 3)
    with pytest.raises(OffsetOutOfRangeException):
        diverging_epoch(partition, 3, 5)
    log.delete_records(2)
    with pytest.raises(OffsetOutOfRangeException):
        diverging_epoch(partition, 1, 1)
