"""What ``send`` and ``enqueue`` return, and when what is wrong is raised."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from aioproducer import Delivery, KafkaProducer
from aioproducer.errors import IllegalArgumentException, RecordTooLargeException
from tests.support.scripted_broker import ScriptedCluster
from tests.support.virtual_time import World, virtual


@virtual
async def test_enqueue_gives_a_coroutine_that_has_done_its_work(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.partitions_for("t")
            first, second = producer.enqueue("t", b"1"), producer.enqueue("t", b"2")
            assert isinstance(first, Coroutine)
            assert asyncio.iscoroutine(first)
            later = await asyncio.create_task(second)
            earlier = await first
            assert isinstance(earlier, Delivery)
            assert [(await delivery).offset for delivery in (earlier, later)] == [0, 1]


@virtual
async def test_what_is_wrong_is_raised_where_enqueue_is_awaited(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.partitions_for("t")
            too_large, no_topic = producer.enqueue("t", bytes(2 << 20)), producer.enqueue("", b"v")
            with pytest.raises(RecordTooLargeException):
                _ = await too_large
            with pytest.raises(IllegalArgumentException):
                _ = await no_topic


@virtual
async def test_a_task_cancelled_before_it_began_leaves_no_record_that_had_to_wait(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            unknown = asyncio.create_task(producer.enqueue("t", b"v"))
            unknown.cancel()
            with pytest.raises(asyncio.CancelledError):
                _ = await unknown
            assert (await producer.send("t", b"next")).offset == 0
            assert producer.metrics()["parked-records"] == 0
