"""An awaited record does not linger in vain, unless linger.ms says so."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from aioproducer import KafkaProducer, wait_all
from aioproducer.protocol.api_key import ApiKey
from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.network import Network, NetworkFaults
from aioproducer.testing.simulation.trace import Trace
from tests.support.scripted_broker import ScriptedCluster

ANSWER = 0.0008
"""Seconds that an answer takes at most: less than the millisecond for which pipeline=auto lets records wait."""


def near(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """In virtual time, on the shortest of lines."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        network = Network(Random(0), Conditions(latency=0.0001), NetworkFaults(), Trace())
        with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network)) as runner:
            runner.run(test(**fixtures))

    return run


@asynccontextmanager
async def warm(partitions: int = 1, **config: Any) -> AsyncIterator[tuple[ScriptedCluster, KafkaProducer]]:
    """A producer that knows the topic and the line to its broker."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", partitions)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
            for _ in range(3):
                await asyncio.gather(*(producer.send("t", b"warm", partition=one) for one in range(partitions)))
            yield cluster, producer


def requests(cluster: ScriptedCluster) -> int:
    return cluster.broker.count(ApiKey.PRODUCE)


async def seconds(task: Any) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await task
    return loop.time() - began


async def one_after_another(producer: KafkaProducer, records: int) -> None:
    for number in range(records):
        await producer.send("t", b"%d" % number)


@near
async def test_a_task_that_awaits_each_record_does_not_linger() -> None:
    async with warm() as (cluster, producer):
        before = requests(cluster)
        assert await seconds(one_after_another(producer, 20)) < 20 * ANSWER
        assert requests(cluster) - before == 20


@near
async def test_an_explicit_linger_is_obeyed() -> None:
    async with warm(linger_ms=7) as (_, producer):
        assert await seconds(one_after_another(producer, 10)) > 10 * 0.007


@near
async def test_tasks_that_await_in_step_share_their_batches() -> None:
    async with warm() as (cluster, producer):
        before = requests(cluster)
        async with asyncio.TaskGroup() as group:
            for _ in range(100):
                group.create_task(one_after_another(producer, 5))
        assert requests(cluster) - before == 5


@near
async def test_wait_all_lets_none_of_its_batches_linger() -> None:
    async with warm(partitions=3) as (cluster, producer):
        before = requests(cluster)
        for number in range(1, 6):
            deliveries = [producer.send("t", b"x", partition=one % 3) for one in range(10)]
            assert await seconds(wait_all(deliveries)) < ANSWER
            assert requests(cluster) - before == number


@pytest.mark.parametrize("how", ["gather", "in turn", "timeout"])
@near
async def test_records_awaited_after_all_were_sent_do_not_linger(how: str) -> None:
    async def send_all(producer: KafkaProducer) -> None:
        deliveries = [producer.send("t", b"x") for _ in range(10)]
        if how == "gather":
            await asyncio.gather(*deliveries)
        elif how == "timeout":
            async with asyncio.timeout(10), asyncio.TaskGroup() as group:
                for delivery in deliveries:
                    group.create_task(delivery)  # type: ignore[arg-type]
        else:
            for delivery in deliveries:
                await delivery

    async with warm() as (cluster, producer):
        before = requests(cluster)
        for number in range(1, 6):
            assert await seconds(send_all(producer)) < ANSWER
            assert requests(cluster) - before == number


@near
async def test_an_unawaited_batch_lingers() -> None:
    async with warm() as (cluster, producer):
        before = requests(cluster)
        for _ in range(5):
            deliveries = [producer.send("t", b"x") for _ in range(10)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert requests(cluster) == before
        await asyncio.sleep(1)
        assert requests(cluster) > before
        assert all(delivery.done() for delivery in deliveries)


@near
async def test_a_continuing_stream_is_not_cut_short_for_one_awaiting_task() -> None:
    """A task that awaits a record among others waits no longer than these."""
    async with warm() as (cluster, producer):
        before = requests(cluster)
        stopped = False

        async def stream() -> None:
            while not stopped:
                _ = producer.send("t", b"x")
                await asyncio.sleep(0)

        streaming = asyncio.ensure_future(stream())
        await asyncio.sleep(0)
        awaiting = asyncio.ensure_future(producer.send("t", b"awaited"))
        for _ in range(50):
            await asyncio.sleep(0)
        assert requests(cluster) == before
        stopped = True
        await streaming
        await awaiting
        assert requests(cluster) - before == 1


@near
async def test_a_record_awaited_late_leaves_when_it_is_awaited() -> None:
    async with warm(linger_ms=1000, pipeline="auto") as (_, producer):
        delivery = producer.send("t", b"x")
        await asyncio.sleep(0)
        assert await seconds(delivery) < ANSWER
