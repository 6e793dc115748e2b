from __future__ import annotations

from typing import Any

import pytest

from aioproducer.errors import ConfigException, IllegalArgumentException, PartitionerException
from aioproducer.partitioners import RoundRobinPartitioner
from aioproducer.producer.hooks.custom_partitioner import CustomPartitioner
from aioproducer.types import PartitionInfo, TopicPartitions

INFOS = tuple(PartitionInfo("t", index, leader, 0, (0,), (0,), ()) for index, leader in enumerate([1, -1, 2]))


def ask(plugin: Any, infos: tuple[PartitionInfo, ...] = INFOS) -> int:
    return CustomPartitioner(plugin).partition("t", "key", b"key", "value", b"value", infos)


def test_it_sees_the_record_as_it_was_sent_and_as_it_is_sent_on() -> None:
    seen: list[Any] = []

    def first(*arguments: Any) -> int:
        seen.extend(arguments)
        return 0

    assert ask(first) == 0
    assert seen == ["t", "key", b"key", "value", b"value", INFOS]
    assert isinstance(seen[-1], TopicPartitions)
    assert seen[-1].available == (INFOS[0], INFOS[2])


class Number:
    """An integer of another library."""

    def __index__(self) -> int:
        return 2


class Fixed:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def partition(self, *_: Any) -> Any:
        return self.answer


@pytest.mark.parametrize(("answer", "index"), [(0, 0), (2, 2), (Number(), 2)])
def test_an_index_is_an_index(answer: Any, index: int) -> None:
    assert ask(Fixed(answer)) == index


@pytest.mark.parametrize("answer", [-1, 3, 2**70, None, "1", 1.0, INFOS[0]])
def test_anything_else_is_an_error_that_names_the_partitioner(answer: Any) -> None:
    with pytest.raises(PartitionerException, match=r"partitioner Fixed answered .* from 0 to 2") as raised:
        ask(Fixed(answer))
    assert isinstance(raised.value, IllegalArgumentException)


def test_an_error_of_a_partitioner_is_the_cause_of_one_that_names_it() -> None:
    def hopeless(*_: Any) -> int:
        raise LookupError("no shard for this key")

    with pytest.raises(PartitionerException, match=r"hopeless failed .*'t': LookupError: no shard") as raised:
        ask(hopeless)
    assert isinstance(raised.value.__cause__, LookupError)


def test_an_interrupt_is_no_error_of_the_partitioner() -> None:
    def interrupted(*_: Any) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(interrupted)


def test_an_asynchronous_one_is_refused() -> None:
    async def later(*_: Any) -> int:
        return 0

    with pytest.raises(ConfigException, match="asynchronous") as raised:
        CustomPartitioner(later)
    assert raised.value.name == "partitioner.class"


def test_partitions_are_those_of_now() -> None:
    custom = CustomPartitioner(RoundRobinPartitioner())

    def turn(infos: tuple[PartitionInfo, ...]) -> int:
        return custom.partition("t", None, None, None, None, infos)

    assert [turn(INFOS) for _ in range(2)] == [0, 2]
    lead = (*INFOS[:1], INFOS[1]._replace(leader=1), *INFOS[2:])
    assert [turn(lead) for _ in range(3)] == [2, 0, 1]
