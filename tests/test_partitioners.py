"""RoundRobinPartitioner: what Kafka's RoundRobinPartitionerTest checks, and its turns."""

from __future__ import annotations

from collections import Counter

from aioproducer.partitioners import Partitioner, RoundRobinPartitioner
from aioproducer.types import PartitionInfo, TopicPartitions


def topic(name: str, *leaders: int) -> TopicPartitions:
    return TopicPartitions(
        PartitionInfo(name, index, leader, 0, (0,), (0,), ()) for index, leader in enumerate(leaders)
    )


def turns(partitioner: Partitioner, name: str, partitions: TopicPartitions, times: int) -> list[int]:
    return [partitioner.partition(name, None, None, "v", b"v", partitions) for _ in range(times)]


def test_partitions_have_their_turn_one_after_the_other() -> None:
    assert turns(RoundRobinPartitioner(), "t", topic("t", 1, 1, 2), 7) == [0, 1, 2, 0, 1, 2, 0]


def test_a_key_makes_no_difference() -> None:
    partitioner = RoundRobinPartitioner()
    partitions = topic("t", 1, 1, 2)
    chosen = [partitioner.partition("t", "key", b"key", "v", b"v", partitions) for _ in range(30)]
    assert Counter(chosen) == {0: 10, 1: 10, 2: 10}


def test_only_partitions_with_a_leader_have_a_turn() -> None:
    assert turns(RoundRobinPartitioner(), "t", topic("t", 1, -1, 2), 4) == [0, 2, 0, 2]


def test_without_any_leader_all_have() -> None:
    assert turns(RoundRobinPartitioner(), "t", topic("t", -1, -1), 4) == [0, 1, 0, 1]


def test_topics_have_turns_of_their_own() -> None:
    partitioner = RoundRobinPartitioner()
    a, b = topic("a", 1, 1, 1, 1), topic("b", 1)
    counts: Counter[int] = Counter()
    for number in range(40):
        counts.update(turns(partitioner, "a", a, 1))
        if number % 5 == 0:
            turns(partitioner, "b", b, 1)
    assert counts == {0: 10, 1: 10, 2: 10, 3: 10}


def test_partitions_that_come_have_their_turn() -> None:
    partitioner = RoundRobinPartitioner()
    turns(partitioner, "t", topic("t", 1, 1), 2)
    assert turns(partitioner, "t", topic("t", 1, 1, 1), 4) == [2, 0, 1, 2]
