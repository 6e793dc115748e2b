"""From topic to topic, exactly once: with aiokafka's consumer, rebalances, kills and poisoned records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from aioproducer import KafkaProducer, TopicPartition
from aioproducer.admin import KafkaAdmin
from aioproducer.broker import EmbeddedCluster
from aioproducer.dead_letters import DeadLetters
from aioproducer.errors import IllegalArgumentException, ProducerFencedException
from aioproducer.testing.simulation.checks.transaction_invariants import read_committed
from aioproducer.transform import Output, Transform

PARTITIONS = 3
GROUP = "copiers"

pytestmark = pytest.mark.timeout(120)


@asynccontextmanager
async def an_input(records: int, **configs: Any) -> AsyncIterator[EmbeddedCluster]:
    """A topic with this many records, by number, and one for what is made of them."""
    cluster_configs = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 100}
    async with EmbeddedCluster(configs=cluster_configs) as cluster:
        cluster.create_topic("in", PARTITIONS)
        cluster.create_topic("out", PARTITIONS, configs=configs)
        cluster.create_topic("dead")
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for number in range(records):
                _ = producer.send("in", b"%d" % number, partition=number % PARTITIONS)
        yield cluster


@asynccontextmanager
async def a_transform(
    cluster: EmbeddedCluster, name: str, handler: Any, *, dead: bool = False, **more: Any
) -> AsyncIterator[Transform]:
    servers = cluster.bootstrap_servers
    consumer = AIOKafkaConsumer(
        "in",
        bootstrap_servers=servers,
        group_id=GROUP,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        session_timeout_ms=2000,
        heartbeat_interval_ms=200,
    )
    producer: KafkaProducer[Any, Any]
    async with (
        KafkaAdmin(bootstrap_servers=servers) as admin,
        KafkaProducer(bootstrap_servers=servers, transactional_id=name) as producer,
    ):
        await producer.init_transactions()
        try:
            await consumer.start()
            letters = DeadLetters(producer, "dead") if dead else None
            more = {"poll_ms": 50, "max_records": 40, **more}
            yield Transform(consumer, producer, handler, group_id=GROUP, admin=admin, letters=letters, **more)
        finally:
            await consumer.stop()


def values(cluster: EmbeddedCluster, topic: str = "out") -> list[list[bytes | None]]:
    """By partition, as a read_committed consumer sees them."""
    return [[record.value for record in read_committed(one.log)] for one in cluster.topic(topic).partitions]


def numbers(records: int) -> list[list[bytes | None]]:
    return [[b"%d" % number for number in range(first, records, PARTITIONS)] for first in range(PARTITIONS)]


async def copy(message: Any, output: Output) -> None:
    if int(message.value) % 7 == 0:
        await asyncio.sleep(0.002)  # a later one may be ready earlier
    output.send("out", message.value, partition=message.partition)


async def until_committed(cluster: EmbeddedCluster, records: int) -> None:
    async with asyncio.timeout(60):
        while sum(cluster.committed_offsets(GROUP).values()) < records:  # noqa: ASYNC110 - the broker sets no event
            await asyncio.sleep(0.02)


async def run(cluster: EmbeddedCluster, name: str, handler: Any, records: int, **more: Any) -> None:
    """A transform until the group has committed this many records."""
    async with a_transform(cluster, name, handler, **more) as transform:
        running = asyncio.create_task(transform.run())
        committed = asyncio.create_task(until_committed(cluster, records))
        done, _ = await asyncio.wait([running, committed], return_when=asyncio.FIRST_COMPLETED)
        transform.stop()
        committed.cancel()
        await running
        assert committed in done


async def test_each_record_once_and_in_order() -> None:
    async with an_input(600) as cluster:
        await run(cluster, "a", copy, 600)
        assert values(cluster) == numbers(600)


async def test_exactly_once_across_rebalances_and_kills() -> None:
    async with an_input(1500) as cluster:

        async def one(name: str) -> None:
            async with a_transform(cluster, name, copy) as transform:
                await transform.run()

        first = asyncio.create_task(one("a"))
        await until_committed(cluster, 200)
        second = asyncio.create_task(one("b"))
        await until_committed(cluster, 500)
        first.cancel()
        await asyncio.wait([first])
        third = asyncio.create_task(one("a"))
        await until_committed(cluster, 1500)
        for task in (second, third):
            task.cancel()
        await asyncio.wait([second, third])
        assert values(cluster) == numbers(1500)


async def test_a_message_that_cannot_be_processed_becomes_a_dead_letter() -> None:
    tries: list[int] = []

    async def picky(message: Any, output: Output) -> None:
        if message.value == b"30":
            tries.append(message.offset)
            raise ValueError("not 30")
        await copy(message, output)

    async with an_input(90) as cluster:
        await run(cluster, "a", picky, 90, dead=True, attempts=3)
        assert values(cluster) == [[one for one in row if one != b"30"] for row in numbers(90)]
        ((letter,),) = [list(read_committed(one.log)) for one in cluster.topic("dead").partitions]
        headers = {name.removeprefix("aioproducer.dead."): value for name, value in letter.headers}
        assert (letter.value, headers["attempts"], headers["error"]) == (b"30", b"3", b"ValueError")
        assert (headers["origin.topic"], headers["origin.partition"], headers["origin.offset"]) == (b"in", b"0", b"10")
        assert len(tries) == 3


async def test_a_record_that_a_broker_refuses_becomes_a_dead_letter() -> None:
    async def inflate(message: Any, output: Output) -> None:
        value = b"x" * 600 if message.value == b"31" else message.value
        output.send("out", value, partition=message.partition)

    async with an_input(90, **{"max.message.bytes": 500}) as cluster:
        await run(cluster, "a", inflate, 90, dead=True)
        assert values(cluster) == [[one for one in row if one != b"31"] for row in numbers(90)]
        assert values(cluster, "dead") == [[b"31"]]


async def test_without_dead_letters_the_error_of_a_handler_ends_it() -> None:
    async def fail(message: Any, output: Output) -> None:
        raise ZeroDivisionError

    async with an_input(3) as cluster:
        with pytest.raises(ZeroDivisionError):
            await run(cluster, "a", fail, 3)
        assert values(cluster) == [[], [], []]


async def test_a_fenced_producer_ends_it() -> None:
    async with an_input(30) as cluster, a_transform(cluster, "a", copy) as transform:
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="a") as newer:
            await newer.init_transactions()
        with pytest.raises(ProducerFencedException):
            await transform.run()
        assert values(cluster) == [[], [], []]


async def test_misuse_is_refused() -> None:
    async with an_input(0) as cluster:
        servers = cluster.bootstrap_servers
        consumer: Any = object()
        admin = KafkaAdmin(bootstrap_servers=servers)
        with pytest.raises(IllegalArgumentException, match=r"transactional\.id"):
            Transform(consumer, KafkaProducer(bootstrap_servers=servers), copy, group_id=GROUP, admin=admin)
        producer: KafkaProducer[Any, Any] = KafkaProducer(bootstrap_servers=servers, transactional_id="a")
        with pytest.raises(IllegalArgumentException, match="attempts is 0"):
            Transform(consumer, producer, copy, group_id=GROUP, admin=admin, attempts=0)
        with pytest.raises(TypeError, match="no argument partitoin"):
            Output().send("t", partitoin=1)
        assert cluster.committed_offsets(GROUP) == {}
        assert TopicPartition("in", 0) not in cluster.committed_offsets(GROUP)
