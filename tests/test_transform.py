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
from aioproducer.errors import IllegalArgumentException, KafkaError, ProducerFencedException
from aioproducer.testing.simulation.checks.transaction_invariants import read_committed
from aioproducer.transform import Output, Transform

PARTITIONS = 3
GROUP = "copiers"

pytestmark = pytest.mark.timeout(120)


@asynccontextmanager
async def an_input(
    records: int, *, auto_create: bool = True, configs: dict[str, Any] | None = None
) -> AsyncIterator[EmbeddedCluster]:
    """A topic with this many records, by number, and one for what is made of them."""
    cluster_configs = {
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 100,
        "auto.create.topics.enable": auto_create,
    }
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
        KafkaProducer(bootstrap_servers=servers, transactional_id=name, **_of_the_producer(more)) as producer,
    ):
        await producer.init_transactions()
        try:
            await consumer.start()
            letters = DeadLetters(producer, "dead") if dead else None
            more = {"poll_ms": 50, "max_records": 40, **more}
            yield Transform(consumer, producer, handler, group_id=GROUP, admin=admin, letters=letters, **more)
        finally:
            await consumer.stop()


def _of_the_producer(more: dict[str, Any]) -> dict[str, Any]:
    """Takes out what are configs of the producer."""
    times = ("max_block_ms", "delivery_timeout_ms", "request_timeout_ms")
    names = ("value_serializer", "buffer_memory", "batch_size", *times)
    return {name: more.pop(name) for name in names if name in more}


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

    async with an_input(90, configs={"max.message.bytes": 500}) as cluster:
        await run(cluster, "a", inflate, 90, dead=True)
        assert values(cluster) == [[one for one in row if one != b"31"] for row in numbers(90)]
        assert values(cluster, "dead") == [[b"31"]]


async def test_dead_letters_of_raw_bytes_need_no_serializer_and_keep_their_time() -> None:
    class Number:
        def serialize(self, topic: str, headers: Any, data: int | None) -> bytes | None:
            return None if data is None else b"%d" % data

    async def double(message: Any, output: Output) -> None:
        if message.value == b"31":
            raise ValueError("not 31")
        output.send("out", int(message.value), partition=message.partition)

    async with an_input(90) as cluster:
        await run(cluster, "a", double, 90, dead=True, attempts=6, value_serializer=Number())
        assert values(cluster) == [[one for one in row if one != b"31"] for row in numbers(90)]
        ((letter,),) = [list(read_committed(one.log)) for one in cluster.topic("dead").partitions]
        (given,) = [record for record in read_committed(cluster.log("in", 1)) if record.value == b"31"]
        assert (letter.value, dict(letter.headers)["aioproducer.dead.attempts"]) == (b"31", b"6")
        assert letter.timestamp_ms == given.timestamp_ms


async def test_a_dead_letter_that_is_too_large_says_what_it_leaves_out() -> None:
    async def fail(message: Any, output: Output) -> None:
        if message.value.startswith(b"x"):
            raise ValueError("no number")
        await copy(message, output)

    async with an_input(30) as cluster:
        cluster.delete_topic("dead")
        cluster.create_topic("dead", configs={"max.message.bytes": 1000})
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.send("in", b"x" * 2000, partition=0)
        await run(cluster, "a", fail, 31, dead=True)
        assert values(cluster) == numbers(30)
        ((letter,),) = [list(read_committed(one.log)) for one in cluster.topic("dead").partitions]
        headers = dict(letter.headers)
        assert (letter.value, headers["aioproducer.dead.left-out"]) == (None, b"value: bytes of 2000 bytes")
        assert headers["aioproducer.dead.error"] == b"ValueError"


async def test_a_batch_whose_output_is_too_large_for_a_unit_is_divided() -> None:
    async def inflate(message: Any, output: Output) -> None:
        for _ in range(5 if message.value == b"31" else 1):
            output.send("out", message.value.ljust(15_000, b"."), partition=message.partition)

    async with an_input(90) as cluster:
        await run(cluster, "a", inflate, 90, dead=True, buffer_memory=60_000, batch_size=20_000)
        made = [[value.rstrip(b".") for value in row if value] for row in values(cluster)]
        assert made == [[one for one in row if one != b"31"] for row in numbers(90)]
        ((letter,),) = [list(read_committed(one.log)) for one in cluster.topic("dead").partitions]
        assert dict(letter.headers)["aioproducer.dead.error"] == b"UnitTooLargeException"


async def test_a_consumer_that_is_cancelled_from_inside_does_not_look_like_a_cancelled_run() -> None:
    async with an_input(3) as cluster, a_transform(cluster, "a", copy) as transform:

        async def cancelled(**more: Any) -> Any:
            raise asyncio.CancelledError

        transform._consumer.getmany = cancelled  # type: ignore[method-assign]
        with pytest.raises(KafkaError, match="was cancelled from inside"):
            await transform.run()


async def test_output_for_a_topic_that_was_deleted_does_not_stop_other_partitions() -> None:
    async def divided(message: Any, output: Output) -> None:
        output.send("gone" if message.partition == 0 else "out", message.value, partition=message.partition)

    times = {"max_block_ms": 300, "delivery_timeout_ms": 1000, "request_timeout_ms": 500}
    async with an_input(30, auto_create=False) as cluster:
        cluster.create_topic("gone")
        async with a_transform(cluster, "a", divided, dead=True, **times) as transform:
            running = asyncio.create_task(transform.run())
            await until_committed(cluster, 30)
            cluster.delete_topic("gone")
            async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
                for number in range(30, 60):
                    _ = producer.send("in", b"%d" % number, partition=number % PARTITIONS)
            await until_committed(cluster, 50)
            transform.stop()
            await running
        assert values(cluster)[1:] == numbers(60)[1:]
        assert cluster.committed_offsets(GROUP)[TopicPartition("in", 0)] == 10
        assert values(cluster, "dead") == [[]]


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
