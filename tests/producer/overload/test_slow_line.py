"""A batch that cannot cross a slow line within request.timeout.ms takes no other batch with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any, TypeVar

import pytest

from aioproducer import Delivery, KafkaProducer
from aioproducer.errors import KafkaError, TimeoutException
from aioproducer.protocol.api_key import ApiKey
from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.network import Network, NetworkFaults
from aioproducer.testing.simulation.trace import Trace
from tests.support.scripted_broker import Exchange, ScriptedCluster, Step, after

T = TypeVar("T")

PARTITIONS = 8
CONFIG: Any = {"linger_ms": 5, "request_timeout_ms": 30_000, "delivery_timeout_ms": 120_000}


async def failures(*, large_first: bool, in_flight: int) -> dict[str, KafkaError | None]:
    """How a record of a megabyte ends, which takes 100 s to cross the line, and small ones of other partitions."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", PARTITIONS)
        async with KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            max_request_size=4 << 20,
            max_in_flight_requests_per_connection=in_flight,
            enable_idempotence=in_flight > 1,
            **CONFIG,
        ) as producer:
            for partition in range(PARTITIONS):
                await producer.send("t", b"warm", partition=partition)
            sizes = {"large": (0, 1_000_000)} | {f"small {number}": (number, 100) for number in range(1, PARTITIONS)}
            names = list(sizes) if large_first else list(reversed(sizes))
            deliveries = {}
            for name in names:
                partition, size = sizes[name]
                deliveries[name] = producer.send("t", bytes(size), partition=partition)
            await asyncio.sleep(20)
            for number in range(1, PARTITIONS):
                deliveries[f"later {number}"] = producer.send("t", bytes(100), partition=number)
            await producer.flush()
            return {name: delivery.exception() for name, delivery in deliveries.items()}


@pytest.mark.parametrize("large_first", [True, False])
@pytest.mark.parametrize("in_flight", [1, 5])
def test_small_batches_are_delivered_beside_one_that_cannot_be(large_first: bool, in_flight: int) -> None:
    line = Conditions(bandwidth=10_000, latency=0.05)
    network = Network(Random(0), line, NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network)) as runner:
        failed = runner.run(failures(large_first=large_first, in_flight=in_flight))
    assert isinstance(failed.pop("large"), TimeoutException)
    assert len(failed) == 2 * (PARTITIONS - 1)
    assert set(failed.values()) == {None}


async def failures_of_small_ones(*, in_flight: int) -> list[KafkaError]:
    """There is always a batch that cannot cross the line; each 5 s somebody sends a small record."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 2 * PARTITIONS)
        async with KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            max_request_size=4 << 20,
            max_in_flight_requests_per_connection=in_flight,
            **CONFIG,
        ) as producer:
            for partition in range(2 * PARTITIONS):
                await producer.send("t", b"warm", partition=partition)
            small = []
            for turn in range(80):
                if turn % 2:
                    producer.send("t", bytes(600_000), partition=turn // 2 % PARTITIONS).add_done_callback(_looked_at)
                await asyncio.sleep(5)
                small.append(producer.send("t", bytes(100), partition=PARTITIONS + turn % PARTITIONS))
            await producer.flush()
            return [error for one in small if (error := one.exception()) is not None]


def _looked_at(delivery: Delivery) -> None:
    assert delivery.exception() is not None


@pytest.mark.parametrize("in_flight", [1, 5])
def test_small_batches_are_delivered_beside_a_stream_that_cannot_be(in_flight: int) -> None:
    network = Network(Random(0), Conditions(bandwidth=10_000, latency=0.05), NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network)) as runner:
        assert runner.run(failures_of_small_ones(in_flight=in_flight)) == []


async def appended(records: int) -> int:
    """How many of the records of a kilobyte that nobody acknowledges are in the log after all."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        servers = cluster.bootstrap_servers
        async with KafkaProducer(bootstrap_servers=servers, acks=0, connections_max_idle_ms=50) as producer:
            for _ in range(records):
                await producer.send("t", bytes(1000))
            await asyncio.sleep(10)
        return cluster.log("t", 0).log_end_offset


@pytest.mark.parametrize("seed", range(20))
def test_a_connection_is_not_idle_while_bytes_leave_it(seed: int) -> None:
    network = Network(Random(seed), Conditions(bandwidth=10_000, latency=0.05, window=2000), NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(seed), network)) as runner:
        assert runner.run(appended(20)) == 20


@pytest.mark.parametrize("in_flight", [1, 5])
@pytest.mark.parametrize("partitions", [5, 200])
def test_a_broker_that_hangs_once_on_a_long_way_makes_no_record_fail(partitions: int, in_flight: int) -> None:
    """An answer takes a sixth of request.timeout.ms, and three time-outs fit into delivery.timeout.ms."""

    async def outcomes() -> list[KafkaError | None]:
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", partitions)
            serving = asyncio.Event()
            serving.set()
            cluster.broker.always(ApiKey.PRODUCE, after(serving))
            loop = asyncio.get_running_loop()
            async with KafkaProducer(
                bootstrap_servers=cluster.bootstrap_servers,
                linger_ms=100,
                request_timeout_ms=2_000,
                delivery_timeout_ms=8_000,
                max_in_flight_requests_per_connection=in_flight,
            ) as producer:
                await producer.partitions_for("t")
                began = loop.time()
                deliveries: list[Delivery] = []
                loop.call_later(3, serving.clear)
                loop.call_later(5.5, serving.set)
                while (passed := loop.time() - began) < 12:
                    while len(deliveries) < passed * 500:
                        deliveries.append(producer.send("t", bytes(60), partition=len(deliveries) % partitions))
                    await asyncio.sleep(0.01)
                await producer.flush()
            return [delivery.exception() for delivery in deliveries]

    line = Conditions(bandwidth=1e7, latency=0.17)
    network = Network(Random(0), line, NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network, max_steps=10**6)) as runner:
        ended = runner.run(outcomes())
    assert len(ended) >= 5_900
    assert [error for error in ended if error is not None] == []


# Brokers that take long for each request


def taking(seconds: float) -> Step:
    """The right answer after this time; the requests of a connection are handled one after the other."""

    async def serve(exchange: Exchange) -> None:
        await asyncio.sleep(seconds)
        exchange.reply(exchange.handle())

    return serve


async def sent_steadily(
    cluster: ScriptedCluster, *, partitions: int, rate: int, size: int = 60, seconds: float = 20, **config: Any
) -> list[KafkaError | None]:
    """What becomes of so many records a second."""
    loop = asyncio.get_running_loop()
    times = {"request_timeout_ms": 2_000, "delivery_timeout_ms": 8_000, "linger_ms": 20}
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **{**times, **config}) as producer:
        await producer.partitions_for("t")
        began = loop.time()
        deliveries: list[Delivery] = []
        while (passed := loop.time() - began) < seconds:
            while len(deliveries) < passed * rate:
                deliveries.append(producer.send("t", bytes(size), partition=len(deliveries) % partitions))
            await asyncio.sleep(0.01)
        await producer.flush()
    assert len(deliveries) >= 0.98 * rate * seconds
    return [delivery.exception() for delivery in deliveries]


def in_virtual_time(what: Callable[[], Coroutine[Any, Any, T]]) -> T:
    network = Network(Random(0), Conditions(latency=0.001), NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network, max_steps=10**6)) as runner:
        return runner.run(what())


@pytest.mark.parametrize("in_flight", [1, 2, 5])
@pytest.mark.parametrize("partitions", [5, 50])
@pytest.mark.parametrize("seconds", [0.4, 0.7, 1.5])
def test_a_broker_that_takes_long_for_each_request_makes_no_record_fail(
    seconds: float, partitions: int, in_flight: int
) -> None:
    """Five requests at once would take longer than request.timeout.ms, and one does not."""

    async def outcomes() -> list[KafkaError | None]:
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", partitions)
            cluster.broker.always(ApiKey.PRODUCE, taking(seconds))
            return await sent_steadily(
                cluster, partitions=partitions, rate=300, max_in_flight_requests_per_connection=in_flight
            )

    assert [error for error in in_virtual_time(outcomes) if error is not None] == []


@pytest.mark.parametrize(("seconds", "rate"), [(0.1, 800), (0.33, 240), (0.7, 60), (1.5, 60)])
def test_batches_grow_where_a_request_takes_long_whatever_its_size(seconds: float, rate: int) -> None:
    """Batches of 16 KiB would be too slow by far for the records of one partition."""

    async def outcomes() -> list[KafkaError | None]:
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 1)
            cluster.broker.always(ApiKey.PRODUCE, taking(seconds))
            return await sent_steadily(cluster, partitions=1, rate=rate, size=1000, seconds=40)

    assert [error for error in in_virtual_time(outcomes) if error is not None] == []


def test_requests_of_other_kinds_count() -> None:
    """Metadata and Produce together take longer than request.timeout.ms."""

    async def outcomes() -> list[KafkaError | None]:
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 5)
            cluster.broker.always(ApiKey.PRODUCE, taking(1.5))
            cluster.broker.always(ApiKey.METADATA, taking(0.7))
            return await sent_steadily(cluster, partitions=5, rate=300, seconds=40, metadata_max_age_ms=5000)

    assert [error for error in in_virtual_time(outcomes) if error is not None] == []


def test_what_a_node_has_not_answered_at_its_old_address_does_not_count_at_the_new_one() -> None:
    async def took() -> float:
        async with ScriptedCluster(2) as cluster:
            cluster.create_topic("t", assignments=[[0]] * 10)
            loop = asyncio.get_running_loop()
            async with KafkaProducer(
                bootstrap_servers=cluster.bootstrap_servers, linger_ms=0, metadata_max_age_ms=300
            ) as producer:
                for partition in range(10):
                    await producer.send("t", b"before", partition=partition)
                old, answers = cluster.brokers[0], asyncio.Event()
                old.always(ApiKey.PRODUCE, after(answers))
                under_way = []
                for partition in range(5):
                    under_way.append(producer.send("t", b"under way", partition=partition))
                    await asyncio.sleep(0.01)
                cluster.brokers[0] = cluster.another_broker(0)
                await cluster.start_node(0, port=0)
                await asyncio.sleep(1)
                assert not any(delivery.done() for delivery in under_way)
                began = loop.time()
                await asyncio.gather(*(producer.send("t", b"later", partition=number) for number in range(5, 10)))
                later = loop.time() - began
                answers.set()
            await old.abort()
            return later

    assert in_virtual_time(took) < 1


def test_a_window_is_used_on_a_way_of_more_than_a_second() -> None:
    """Each answer takes so long that the next batch might look like the first one after a pause."""

    async def taken() -> float:
        loop = asyncio.get_running_loop()
        async with (
            ScriptedCluster() as cluster,
            KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, batch_max_size=16_384, linger_ms=0) as producer,
        ):
            cluster.create_topic("t", 1)
            await producer.send("t", b"first")
            began = loop.time()
            deliveries = [producer.send("t", bytes(10_000)) for _ in range(50)]
            await asyncio.gather(*deliveries)
            return loop.time() - began

    network = Network(Random(0), Conditions(latency=0.6), NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network, max_steps=10**6)) as runner:
        assert runner.run(taken()) < 40  # fifty batches that go alone take more than 100 s


# Lines that become slow


class Stream:
    """What became of a stream, as fast as records are taken, over a line that becomes slower at some time."""

    delivered: int
    """Bytes in the second half of the time after that."""
    appended: list[list[int]]
    """The numbers of the records in each partition's log."""


def stream_over(
    bandwidth: int, slower: int, *, partitions: int, seconds: float, size: int = 1000, **config: Any
) -> Stream:
    network = Network(
        Random(0), Conditions(bandwidth=bandwidth, latency=0.05, window=64 * 1024), NetworkFaults(), Trace()
    )

    async def run() -> Stream:
        found = Stream()
        found.delivered = 0
        loop = asyncio.get_running_loop()
        counting = False

        async def send() -> None:
            for number in count():
                value = number.to_bytes(8, "big") + bytes(size - 8)
                delivery = await producer.enqueue("t", value, partition=number % partitions)
                delivery.add_done_callback(ended)

        def ended(delivery: Delivery) -> None:
            if delivery.exception() is None:
                found.delivered += counting * size

        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", partitions)
            producer = KafkaProducer(
                bootstrap_servers=cluster.bootstrap_servers,
                delivery_timeout_ms=3_600_000,
                max_block_ms=3_600_000,
                buffer_memory=4 << 20,
                **config,
            )
            await producer.start()
            sending = loop.create_task(send())
            await asyncio.sleep(120)
            network.conditions = replace(network.conditions, bandwidth=slower)
            await asyncio.sleep(seconds / 2)
            counting = True
            await asyncio.sleep(seconds / 2)
            counting = False
            _ = sending.cancel()
            await producer.close(timeout=0)
            found.appended = [
                [int.from_bytes((record.value or b"")[:8], "big") for record in cluster.log("t", partition).records()]
                for partition in range(partitions)
            ]
        return found

    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network, max_steps=10**7)) as runner:
        return runner.run(run())


@pytest.mark.parametrize(("bandwidth", "slower"), [(50_000, 5_000), (500_000, 5_000), (50_000, 2_000)])
@pytest.mark.parametrize("partitions", [1, 3])
def test_batches_that_have_grown_cross_a_line_that_has_become_slow(
    bandwidth: int, slower: int, partitions: int
) -> None:
    """They need more than request.timeout.ms as they are."""
    found = stream_over(bandwidth, slower, partitions=partitions, seconds=600)
    assert found.delivered > 0.7 * 300 * slower
    for partition, numbers in enumerate(found.appended):
        assert numbers == list(range(partition, partition + partitions * len(numbers), partitions))
