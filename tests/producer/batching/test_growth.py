"""Batches grow while they cannot leave (KIP-782): on long lines, on slow ones, and with many partitions."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import pytest

from aioproducer import Delivery, KafkaProducer
from aioproducer.producer.producer import core_of
from aioproducer.protocol.api_key import ApiKey
from aioproducer.testing.simulation.loop import SimulatedClock, SimulatedLoop
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.network import Network, NetworkFaults
from aioproducer.testing.simulation.trace import Trace
from tests.support.scripted_broker import Exchange, ScriptedCluster, answer
from tests.support.virtual_time import World, virtual


class Streamed:
    """How a stream of records of one partition went."""

    seconds: float
    batch_size_max: float
    retries: float


def stream(line: Conditions, *, records: int, size: int, **config: Any) -> Streamed:
    """One caller sends them as fast as they are taken."""

    async def run() -> Streamed:
        found = Streamed()
        loop = asyncio.get_running_loop()
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 1)
            async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
                await producer.send("t", bytes(size))
                began = loop.time()
                deliveries = [await producer.enqueue("t", bytes(size)) for _ in range(records)]
                await producer.flush()
                assert all(delivery.exception() is None for delivery in deliveries)
                found.seconds = loop.time() - began
                metrics = producer.metrics()
                found.batch_size_max = metrics["batch-size-max"]
                found.retries = metrics["record-retry-total"]
        return found

    network = Network(Random(0), line, NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network)) as runner:
        return runner.run(run())


LONG = Conditions(bandwidth=1e8, latency=0.05, window=1 << 20)


def test_a_long_line_carries_more_with_batches_that_grow() -> None:
    grown = stream(LONG, records=8000, size=1000, buffer_memory=2 << 20)
    fixed = stream(LONG, records=8000, size=1000, buffer_memory=2 << 20, batch_max_size=16384)
    assert fixed.batch_size_max <= 16384
    assert 16384 < grown.batch_size_max <= 262144
    assert grown.seconds < fixed.seconds / 4


def test_a_slow_line_is_not_made_worse() -> None:
    """5 batches of 256 KiB would take a minute, and time out after half of it, again and again."""
    slow = Conditions(bandwidth=20_000, latency=0.05, window=64 * 1024)
    config: dict[str, Any] = {"request_timeout_ms": 30_000, "delivery_timeout_ms": 600_000, "max_block_ms": 600_000}
    grown = stream(slow, records=3000, size=1000, **config)
    fixed = stream(slow, records=3000, size=1000, batch_max_size=16384, **config)
    assert grown.retries == fixed.retries == 0
    assert grown.seconds < 1.05 * fixed.seconds


def delivered(
    line: Conditions, partitions: int, seconds: float, *, seed: int = 0, **config: Any
) -> tuple[float, float, float]:
    """What one caller, who sends as fast as records are taken, has delivered after so many seconds, in bytes; the
    number of retries; and the number of failures."""

    async def run() -> tuple[float, float, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        value = bytes(5000)
        under_way: deque[Delivery] = deque()
        done = 0

        async def send() -> None:
            nonlocal done
            while True:
                under_way.append(await producer.enqueue("t", value))
                while under_way[0].done():
                    _ = under_way.popleft()
                    done += 1

        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", partitions)
            producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config)
            producer._clock, producer._random = SimulatedClock(loop, lambda: 0.0), Random(seed)
            await producer.start()
            sending = asyncio.create_task(send())
            await asyncio.sleep(seconds)
            sending.cancel()
            metrics = producer.metrics()
            done += sum(delivery.done() for delivery in under_way)
            await producer.close(timeout=0)
        return done * 5000, metrics["record-retry-total"], metrics["record-error-total"]

    network = Network(Random(seed), line, NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(seed), network)) as runner:
        return runner.run(run())


@pytest.mark.parametrize(("round_trip", "partitions"), [(0.01, 1), (0.05, 1), (0.05, 6), (0.15, 1)])
def test_a_stream_over_a_long_line_starts_nearly_as_with_large_batches(round_trip: float, partitions: int) -> None:
    """Within the first round trip it has filled the memory with small batches."""
    line = Conditions(bandwidth=1e8, latency=round_trip / 2, window=4 << 20)
    seconds = 20 * round_trip
    large = delivered(line, partitions, seconds, batch_size=262_144)[0]
    assert delivered(line, partitions, seconds)[0] > 0.6 * large


@pytest.mark.parametrize("partitions", [1, 6])
@pytest.mark.parametrize("bandwidth", [10_000, 50_000, 200_000])
def test_no_request_over_a_slow_line_times_out(bandwidth: int, partitions: int) -> None:
    line = Conditions(bandwidth=bandwidth, latency=0.05, window=64 * 1024)
    config = {"delivery_timeout_ms": 3_600_000, "max_block_ms": 3_600_000, "buffer_memory": 8 << 20}
    done, retries, failures = delivered(line, partitions, 300.0, **config)
    assert (retries, failures) == (0, 0)
    assert done > 0.8 * 300 * bandwidth


@pytest.mark.parametrize(
    ("seed", "bandwidth", "latency"),
    [(1064, 31_390, 0.001), (1073, 43_878, 0.001), (1108, 30_875, 0.018), (1125, 20_074, 0.005)],
)
def test_chance_lets_no_batch_grow_too_large(seed: int, bandwidth: int, latency: float) -> None:
    """Requests time out where a small one, answered late behind others, is taken for what any request takes."""
    line = Conditions(bandwidth=bandwidth, latency=latency, window=64 * 1024)
    config = {"delivery_timeout_ms": 3_600_000, "max_block_ms": 3_600_000, "buffer_memory": 8 << 20}
    done, retries, failures = delivered(line, 20, 300.0, seed=seed, **config)
    assert (retries, failures) == (0, 0)
    assert done > 0.95 * 300 * bandwidth


@virtual
async def test_light_load_is_as_without_growth(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        config: dict[str, Any] = {"linger_ms": 60_000, "delivery_timeout_ms": 120_000, "batch_size": 2000}
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
            _ = await producer.partitions_for("t")
            for _ in range(40):
                _ = producer.send("t", bytes(100))
                await asyncio.sleep(0.001)
            assert 1700 < producer.metrics()["batch-size-avg"] < 2200
            await producer.flush()


@virtual
async def test_a_record_for_a_batch_that_grows_takes_no_turn_of_the_loop(world: World) -> None:
    turns = 0

    async def late(exchange: Exchange) -> None:
        await asyncio.sleep(1)
        await answer(exchange)

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        config: dict[str, Any] = {"linger_ms": 0, "max_in_flight_requests_per_connection": 1}
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", bytes(1000))
            cluster.broker.always(ApiKey.PRODUCE, late)
            _ = producer.send("t", b"v")
            await asyncio.sleep(0.1)
            _ = producer.send("t", b"v")  # begins the batch that waits for the answer
            await asyncio.sleep(0.1)  # longer than a time slice; the Sender has nothing to do meanwhile
            counting = asyncio.create_task(count_turns())
            for _ in range(1500):
                _ = await producer.enqueue("t", bytes(100))
            counting.cancel()
            assert 0 < turns < 10
            await producer.flush()
            assert producer.metrics()["batch-size-max"] > 100_000


@virtual
async def test_batches_of_thousands_of_partitions_linger(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 4000)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=5) as producer:
            _ = await producer.partitions_for("t")
            for number in range(12_000):
                _ = await producer.enqueue("t", bytes(100), partition=number % 4000)
            await producer.flush()
            metrics = producer.metrics()
            assert metrics["record-send-total"] == 12_000
            assert metrics["records-per-request-avg"] > 100
            assert metrics["bufferpool-wait-ratio"] == 0


def test_the_batch_limit_of_a_topic_is_learnt_and_no_later_batch_is_split() -> None:
    async def run() -> None:
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 1, configs={"max.message.bytes": 100_000})
            async with KafkaProducer(
                bootstrap_servers=cluster.bootstrap_servers, buffer_memory=2 << 20, delivery_timeout_ms=600_000
            ) as producer:
                await producer.send("t", bytes(1000))
                split = []
                for _ in range(2):
                    deliveries = [await producer.enqueue("t", bytes(1000)) for _ in range(5000)]
                    await producer.flush()
                    assert all(delivery.exception() is None for delivery in deliveries)
                    split.append(producer.metrics()["batch-split-total"])
                assert split[0] > 0
                assert split[0] == split[1]
                assert 50_000 < core_of(producer).accumulator.limits.most("t") <= 100_000

    network = Network(Random(0), LONG, NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network)) as runner:
        runner.run(run())


def seconds_with_limit(most: int, **config: Any) -> float:
    """How long a stream takes to a topic with this max.message.bytes."""

    async def run() -> float:
        loop = asyncio.get_running_loop()
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 1, configs={"max.message.bytes": most})
            async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
                _ = await producer.partitions_for("t")
                began = loop.time()
                deliveries = [await producer.enqueue("t", bytes(300)) for _ in range(15_000)]
                await producer.flush()
                assert all(delivery.exception() is None for delivery in deliveries)
                return loop.time() - began

    network = Network(Random(0), LONG, NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network)) as runner:
        return runner.run(run())


@pytest.mark.parametrize("limit", [5000, 17_000])
def test_a_small_limit_costs_little_until_it_is_known(limit: int) -> None:
    """What is refused by then goes in many parts."""
    small = limit - 200
    fixed = seconds_with_limit(limit, batch_size=min(small, 16384), batch_max_size=min(small, 16384))
    assert seconds_with_limit(limit) < 1.6 * fixed


NEAR = Conditions(bandwidth=1e9, latency=0.0002, window=1 << 20)


async def as_they_come(producer: KafkaProducer[bytes, bytes]) -> AsyncIterator[None]:
    for record in range(20_000):
        if record % 50 == 0:
            await asyncio.sleep(0.001)
            if record > 10_000:
                yield
        _ = producer.send("t", bytes(100), partition=record % 1000)


async def by_tasks_that_await_each(producer: KafkaProducer[bytes, bytes]) -> AsyncIterator[None]:
    async def send(partition: int) -> None:
        for _ in range(20):
            await asyncio.sleep(Random(partition).random() * 0.02)
            await producer.send("t", bytes(100), partition=partition)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(send(partition)) for partition in range(1000)]
        await asyncio.sleep(0.2)
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0.001)
            yield


def most_unanswered(
    line: Conditions, seconds_a_batch: float, sent: Callable[[KafkaProducer[bytes, bytes]], AsyncIterator[None]]
) -> float:
    """Requests with small batches, to a broker that handles one after the other, and takes so long for each batch."""
    at_work = asyncio.Lock()

    async def handle(exchange: Exchange) -> None:
        async with at_work:
            await asyncio.sleep(
                seconds_a_batch * sum(len(topic.partition_data) for topic in exchange.request.topic_data)
            )
            await answer(exchange)

    async def run() -> float:
        most = 0.0
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 1000)
            cluster.broker.always(ApiKey.PRODUCE, handle)
            async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=5) as producer:
                async for _ in sent(producer):
                    most = max(most, producer.metrics()["requests-in-flight"])
        return most

    network = Network(Random(0), line, NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network)) as runner:
        return runner.run(run())


def test_small_batches_wait_for_an_answer_where_more_requests_would_only_wait_at_the_broker() -> None:
    assert most_unanswered(NEAR, 30e-6, as_they_come) <= 2
    assert most_unanswered(LONG, 1e-6, as_they_come) == 5


def test_awaited_records_do_not_wait_for_an_answer() -> None:
    """Their senders send nothing meanwhile, so that their batches would not grow."""
    assert most_unanswered(NEAR, 30e-6, by_tasks_that_await_each) >= 4
