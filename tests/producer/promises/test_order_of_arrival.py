"""Records keep their order while the metadata that they wait for is applied, in many steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.net import in_slices
from aioproducer.producer.delivery.wait_all import wait_all
from aioproducer.producer.producer import core_of
from tests.net.slices import Slices
from tests.support.producing import make_producer
from tests.support.scripted_broker import ScriptedCluster

MOST = 200
"""Records of a topic after the first."""
TOPICS = [f"t{number}" for number in range(8)]

Producer = KafkaProducer[Any, Any]


def first(*_: Any) -> int:
    """A partitioner."""
    return 0


def one_by_one(producer: Producer, topic: str, value: bytes) -> object:
    return producer.send(topic, value)


def to_a_partition(producer: Producer, topic: str, value: bytes) -> object:
    return producer.send(topic, value, partition=0)


def in_one_call(producer: Producer, topic: str, value: bytes) -> object:
    return asyncio.ensure_future(producer.send_many(topic, [value]))


@pytest.mark.parametrize("send", [one_by_one, to_a_partition, in_one_call])
@pytest.mark.parametrize("partitioner", [None, first])
async def test_newcomers_do_not_overtake_records_that_wait_for_metadata(
    monkeypatch: pytest.MonkeyPatch,
    send: Callable[[Producer, str, bytes], object],
    partitioner: Callable[..., int] | None,
) -> None:
    monkeypatch.setattr(in_slices, "TimeSlice", lambda loop: Slices(always_over=True))
    config = {} if partitioner is None else {"partitioner_class": partitioner}
    async with ScriptedCluster() as cluster:
        for topic in TOPICS:
            cluster.create_topic(topic, 1)
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            oldest = [producer.send(topic, b"0") for topic in TOPICS]
            made: list[object] = []
            number = 0
            while not oldest[-1].done():
                await asyncio.sleep(0)
                if not core_of(producer).accumulator.topics or number == MOST:
                    continue  # nobody can overtake before the first partitions have come
                number += 1
                made += [send(producer, topic, b"%d" % number) for topic in TOPICS]
            await producer.flush()
            for one in made:
                if isinstance(one, asyncio.Future):
                    await one
            await wait_all(oldest)
        for topic in TOPICS:
            assert [int(value or b"") for value in cluster.values(topic)] == list(range(number + 1))


async def test_what_a_partitioner_sends_goes_behind_the_records_it_is_asked_about() -> None:
    producer: Producer

    def partition(topic: str, key: Any, key_bytes: Any, value: Any, *more: Any) -> int:
        if value.startswith(b"old"):
            _sent = producer.send(topic, b"new, at " + value, partition=0)
        return 0

    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, partitioner_class=partition) as producer:
            await wait_all([producer.send("t", b"old %d" % number) for number in range(3)])
            await producer.flush()
        sent = cluster.values("t")
        assert sent == [b"old 0", b"old 1", b"old 2", b"new, at old 0", b"new, at old 1", b"new, at old 2"]
