from __future__ import annotations

import dataclasses

import pytest

from aioproducer.errors import LeaderNotAvailableException, UnknownTopicOrPartitionException
from aioproducer.net.metadata.cluster import NO_TOPIC_ID, Cluster, TopicMetadata
from aioproducer.types import PartitionInfo


def test_a_partition_with_its_leader() -> None:
    led, lost = PartitionInfo("t", 0, 5, 0, (), (), ()), PartitionInfo("t", 1, -1, 0, (), (), ())
    topic = TopicMetadata("t", NO_TOPIC_ID, (led, lost))
    assert topic.led(0) is led
    with pytest.raises(LeaderNotAvailableException, match="t-1 has no leader"):
        topic.led(1)
    with pytest.raises(UnknownTopicOrPartitionException, match="there is no t-2: topic 't' has partitions 0 to 1"):
        topic.led(2)


def test_a_snapshot_does_not_change() -> None:
    cluster = Cluster(topics={"t": TopicMetadata("t", NO_TOPIC_ID, ())})
    with pytest.raises(dataclasses.FrozenInstanceError):
        cluster.controller_id = 1  # type: ignore[misc]
    assert cluster == Cluster(topics={"t": TopicMetadata("t", NO_TOPIC_ID, ())})
    assert cluster != Cluster()
