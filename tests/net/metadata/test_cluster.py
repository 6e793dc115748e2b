from __future__ import annotations

import dataclasses

import pytest

from aioproducer.errors import LeaderNotAvailableException, UnknownTopicOrPartitionException
from aioproducer.net.metadata.cluster import CHUNK, NO_TOPIC_ID, Cluster, Partitions, TopicMetadata
from aioproducer.types import PartitionInfo


def test_a_partition_with_its_leader() -> None:
    led, lost = PartitionInfo("t", 0, 5, 0, (), (), ()), PartitionInfo("t", 1, -1, 0, (), (), ())
    topic = TopicMetadata("t", NO_TOPIC_ID, Partitions.of((led, lost)))
    assert topic.led(0) is led
    with pytest.raises(LeaderNotAvailableException, match="t-1 has no leader"):
        topic.led(1)
    with pytest.raises(UnknownTopicOrPartitionException, match="there is no t-2: topic 't' has partitions 0 to 1"):
        topic.led(2)


def test_a_snapshot_does_not_change() -> None:
    cluster = Cluster(topics={"t": TopicMetadata("t", NO_TOPIC_ID, Partitions())})
    with pytest.raises(dataclasses.FrozenInstanceError):
        cluster.controller_id = 1  # type: ignore[misc]
    assert cluster == Cluster(topics={"t": TopicMetadata("t", NO_TOPIC_ID, Partitions())})
    assert cluster != Cluster()


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, 3 * CHUNK, 3 * CHUNK + 5])
def test_partitions_are_a_sequence(size: int) -> None:
    infos = [PartitionInfo("t", number, 1, 0, (1,), (1,), ()) for number in range(size)]
    partitions = Partitions.of(infos)
    assert len(partitions) == size
    assert bool(partitions) == bool(infos)
    assert list(partitions) == infos
    assert partitions == Partitions.of(infos)
    assert [partitions[number] for number in range(-size, size)] == infos * 2
    assert partitions[1:-1] == tuple(infos[1:-1])
    for beyond in (size, -size - 1):
        with pytest.raises(IndexError):
            partitions[beyond]


def test_partitions_change_in_a_copy() -> None:
    infos = [PartitionInfo("t", number, 1, 0, (1,), (1,), ()) for number in range(3 * CHUNK)]
    partitions = Partitions.of(infos)
    places = (0, 5, 3 * CHUNK - 1)
    changed = partitions.with_changes([infos[place]._replace(leader=2) for place in places])
    assert [info.partition for info in changed if info.leader == 2] == list(places)
    assert list(partitions) == infos
