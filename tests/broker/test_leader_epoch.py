from __future__ import annotations

import pytest

from aioproducer.broker.broker_config import BrokerConfig
from aioproducer.broker.leader_epoch import check_leader_epoch
from aioproducer.broker.partition_log import PartitionLog
from aioproducer.broker.topic import Partition
from aioproducer.broker.topic_config import TopicConfig
from aioproducer.errors import FencedLeaderEpochException, UnknownLeaderEpochException


def test_only_the_current_epoch_will_do() -> None:
    log = PartitionLog("t-0", TopicConfig.of({}, BrokerConfig.of({})))
    partition = Partition("t", 0, (0,), log, leader=0, leader_epoch=4)
    check_leader_epoch(partition, -1)
    check_leader_epoch(partition, 4)
    with pytest.raises(FencedLeaderEpochException):
        check_leader_epoch(partition, 3)
    with pytest.raises(UnknownLeaderEpochException):
        check_leader_epoch(partition, 5)
