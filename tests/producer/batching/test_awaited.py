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
from tests.support.scripted_broker import Exchange, ScriptedCluster, answer

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


def most_unanswered(tasks: int, partitions: int, **config: Any) -> tuple[float, int]:
    """The most requests that are unanswered, and the number of all, where tasks each await every record, and the broker
    takes a millisecond for each request."""
    at_work = asyncio.Lock()

    async def handle(exchange: Exchange) -> None:
        async with at_work:
            await asyncio.sleep(0.001)
            await answer(exchange)

    @near
    async def run() -> None:
        async with warm(partitions, **config) as (cluster, producer):
            cluster.broker.always(ApiKey.PRODUCE, handle)
            async with asyncio.TaskGroup() as group:
                for _ in range(tasks):
                    group.create_task(one_after_another(producer, 20))
                for _ in range(100):
                    await asyncio.sleep(0.0001)
                    found.append(producer.metrics()["requests-in-flight"])
            sent.append(requests(cluster))

    found: list[float] = []
    sent: list[int] = []
    run()
    return max(found), sent[0]


@pytest.mark.parametrize("partitions", [1, 6])
def test_many_tasks_that_await_in_step_share_two_requests(partitions: int) -> None:
    """So the broker works on one while the tasks of the other go on."""
    unanswered, requests = most_unanswered(1000, partitions, batch_size=2000)
    assert unanswered >= 2
    assert 35 < requests < 75


def test_one_request_at_a_time_is_not_divided() -> None:
    unanswered, requests = most_unanswered(1000, 6, batch_size=2000, max_in_flight_requests_per_connection=1)
    assert unanswered == 1
    assert requests < 30


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
