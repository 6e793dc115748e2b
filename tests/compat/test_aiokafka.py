"""What aiokafka shows of its producer holds for the class that takes its place."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer import Outcome
from aioproducer.compat.aiokafka import AIOKafkaProducer, errors
from aioproducer.error_code import ErrorCode
from aioproducer.errors import ConfigException
from aioproducer.protocol.api_keys import ApiKey
from tests.support.leaks import no_leaks as no_leaks
from tests.support.scripted_broker import ScriptedCluster, answer, drop, error
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


@asynccontextmanager
async def a_cluster(partitions: int = 2, nodes: int = 1, **options: Any) -> AsyncIterator[ScriptedCluster]:
    async with ScriptedCluster(nodes, **options) as cluster:
        cluster.create_topic("t", partitions)
        yield cluster


def make(cluster: ScriptedCluster, **arguments: Any) -> AIOKafkaProducer:
    return AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **{"retry_backoff_ms": 5, **arguments})


# Life


async def test_it_starts_knows_partitions_and_stops() -> None:
    async with a_cluster() as cluster:
        producer = make(cluster)
        await producer.start()
        assert await producer.partitions_for("t") == {0, 1}
        await producer.stop()
        await producer.stop()
        with pytest.raises(errors.ProducerClosed):
            await producer.send("t", b"value")
        with pytest.raises(errors.ProducerClosed):
            await producer.send_batch(producer.create_batch(), "t", partition=0)


async def test_leaving_the_context_stops_it_by_an_exception_too() -> None:
    async with a_cluster() as cluster:
        futures: list[asyncio.Future[Any]] = []

        async def fail() -> None:
            async with make(cluster, linger_ms=60_000) as producer:
                futures.append(await producer.send("t", b"value", partition=0))
                raise LookupError

        with pytest.raises(LookupError):
            await fail()
        assert futures[0].result().offset == 0, "what was accepted is delivered"


async def test_without_a_broker_it_does_not_start() -> None:
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1", request_timeout_ms=100)
    with pytest.raises(errors.KafkaConnectionError, match=r"Unable to bootstrap from 127\.0\.0\.1:1"):
        await producer.start()
    await producer.stop()


async def test_one_that_was_not_stopped_warns_and_is_collected() -> None:
    async with a_cluster() as cluster:
        producer = make(cluster)
        await producer.start()
        underneath, reference = producer.kafka_producer, weakref.ref(producer)
        with pytest.warns(ResourceWarning, match="Unclosed AIOKafkaProducer"):
            del producer
            gc.collect()
        assert reference() is None
        await underneath.close()


def test_it_may_be_made_while_no_loop_runs() -> None:
    async def started() -> ScriptedCluster:
        cluster = ScriptedCluster()
        await cluster.start()
        cluster.create_topic("t", 1)
        return cluster

    async def use(producer: AIOKafkaProducer, cluster: ScriptedCluster) -> None:
        async with producer:
            assert (await producer.send_and_wait("t", b"value")).offset == 0
        await cluster.close()

    with asyncio.Runner() as runner:
        cluster = runner.run(started())
        with pytest.warns(DeprecationWarning, match="'loop' is deprecated"):
            producer = make(cluster, loop=runner.get_loop())
        runner.run(use(producer, cluster))


async def test_another_loop_than_it_was_made_for_is_told() -> None:
    other = asyncio.new_event_loop()
    with pytest.warns(DeprecationWarning):
        producer = AIOKafkaProducer(loop=other)
    other.close()
    with pytest.raises(errors.IllegalStateError, match="another event loop"):
        await producer.start()


# Arguments


@pytest.mark.parametrize(
    "arguments",
    [
        {"acks": 122},
        {"acks": 1, "enable_idempotence": True},
        {"acks": 0, "transactional_id": "x"},
        {"compression_type": "my_custom"},
        {"security_protocol": "SOME"},
        {"security_protocol": "SSL"},
        {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"},
        {"security_protocol": "SASL_PLAINTEXT"},
        {"linger": 5},
    ],
    ids=str,
)
def test_what_cannot_be_is_a_value_error(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as raised:
        AIOKafkaProducer(**arguments)
    assert isinstance(raised.value, ConfigException)


async def test_a_version_of_the_protocol_is_not_needed() -> None:
    with pytest.warns(DeprecationWarning, match="'api_version' is deprecated"):
        AIOKafkaProducer(api_version="auto")


async def test_configs_of_this_package_may_be_given_besides() -> None:
    producer = AIOKafkaProducer(enable_idempotence=True, delivery_timeout_ms=50_000, client_id="mine")
    config = producer.kafka_producer.config
    assert (config.delivery_timeout_ms, config.client_id, config.acks) == (50_000, "mine", "all")


# Records


async def test_records_are_delivered_where_their_futures_say() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        first = await producer.send("t", b"first", partition=1)
        assert isinstance(first, asyncio.Future)
        metadata = await first
        assert (metadata.topic, metadata.partition, metadata.offset) == ("t", 1, 0)
        assert metadata.topic_partition == ("t", 1)
        assert (await producer.send_and_wait("t", b"second", partition=1)).offset == 1
        by_key = [(await producer.send_and_wait("t", b"value", key=b"KEY")).partition for _ in range(5)]
        assert len(set(by_key)) == 1
        assert cluster.values("t", 1)[:2] == [b"first", b"second"]


async def test_futures_are_futures() -> None:
    seen: list[int] = []
    async with a_cluster() as cluster, make(cluster) as producer:
        futures = [await producer.send("t", b"%d" % number, partition=0) for number in range(3)]
        futures[2].add_done_callback(lambda future: seen.append(future.result().offset))
        done, _ = await asyncio.wait(futures)
        assert sorted(future.result().offset for future in done) == [0, 1, 2]
        await asyncio.sleep(0)
        assert seen == [2]


async def test_with_acks_0_there_is_nothing_to_tell() -> None:
    async with a_cluster() as cluster, make(cluster, acks=0) as producer:
        futures = [await producer.send("t", b"value", partition=partition) for partition in (0, 1)]
        told: list[Any] = await asyncio.gather(*futures)
        assert told == [None, None]
        assert await producer.send_and_wait("t", b"value", partition=0) is None


async def test_serializers_make_the_bytes_that_decide() -> None:
    async with (
        a_cluster() as cluster,
        make(
            cluster,
            key_serializer=lambda key: key.upper().encode(),
            value_serializer=lambda value: repr(value).encode(),
            max_request_size=1000,
        ) as producer,
    ):
        first = await producer.send_and_wait("t", {"a": 1}, key="some key")
        second = await producer.send_and_wait("t", "text", key="SOME KEY")
        assert (second.partition, second.offset) == (first.partition, first.offset + 1)
        assert cluster.values("t", first.partition) == [b"{'a': 1}", b"'text'"]
        with pytest.raises(errors.MessageSizeTooLargeError, match=r"^\[Error 10\] MessageSizeTooLargeError: "):
            await producer.send("t", "*" * 2000, key="some key")


async def test_what_a_serializer_raises_is_raised_as_it_is() -> None:
    async with a_cluster() as cluster, make(cluster, value_serializer=lambda value: 1 / value) as producer:
        with pytest.raises(ZeroDivisionError):
            await producer.send("t", 0)


async def test_what_is_not_bytes_is_a_type_error_and_nothing_is_sent() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        with pytest.raises(TypeError, match="the value is a str"):
            await producer.send("t", "text")
        with pytest.raises(TypeError, match="the key is a int"):
            await producer.send("t", b"value", key=1)
        wrong: Any = [("name", "text")]
        with pytest.raises(TypeError, match="header"):
            await producer.send("t", b"value", headers=wrong)
        await producer.flush()
        assert cluster.broker.count(ApiKey.PRODUCE) == 0


async def test_misuse_is_an_assertion_error() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        with pytest.raises(AssertionError, match="a key or a value"):
            await producer.send("t")
        for partition in (-1, 2):
            with pytest.raises(AssertionError, match=f"has no partition {partition}: it has 0 to 1"):
                await producer.send("t", b"value", partition=partition)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_compression(codec: str) -> None:
    async with a_cluster(1) as cluster, make(cluster, compression_type=codec) as producer:
        await producer.send_and_wait("t", b"large message-" * 100)
        assert {batch.codec.name.lower() for batch in cluster.log("t").batches()} == {codec}


async def test_headers_are_any_iterable_of_pairs() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        await producer.send_and_wait("t", b"value", partition=0, headers=(pair for pair in [("type", b"Normal")]))
        (record,) = cluster.log("t").records()
        assert list(record.headers) == [("type", b"Normal")]


async def test_flush_does_not_wait_for_linger() -> None:
    async with a_cluster() as cluster, make(cluster, linger_ms=60_000) as producer:
        futures = [await producer.send("t", b"value") for _ in range(2)]
        assert not any(future.done() for future in futures)
        await producer.flush()
        assert all(future.done() for future in futures)


async def test_timestamps_are_the_records_own_or_the_brokers() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        cluster.create_topic("stamped", 1, configs={"message.timestamp.type": "LogAppendTime"})
        now = await producer.send_and_wait("t", b"value", partition=0)
        assert (abs(now.timestamp - time.time() * 1000) < 20_000, now.timestamp_type) == (True, 0)
        given = await producer.send_and_wait("t", b"value", partition=0, timestamp_ms=123123123)
        assert (given.timestamp, given.timestamp_type) == (123123123, 0)
        stamped = await producer.send_and_wait("stamped", b"value", timestamp_ms=123123123)
        assert (stamped.timestamp > 123123123, stamped.timestamp_type) == (True, 1)


async def test_a_partitioner_is_asked_with_the_bytes_of_the_key() -> None:
    asked: list[Any] = []

    def second(key: bytes | None, every: list[int], available: list[int]) -> int:
        asked.append((key, every, available))
        return every[1]

    async with a_cluster() as cluster:
        async with make(cluster, partitioner=second, key_serializer=str.encode) as producer:
            assert (await producer.send_and_wait("t", b"value", key="k")).partition == 1
            batch = producer.create_batch()
            batch.append(key="k", value=b"value", timestamp=None)
            assert (await (await producer.send_batch(batch, "t", partition=None))).partition == 1
        assert asked == [(b"k", [0, 1], [0, 1]), (None, [0, 1], [0, 1])]
        async with make(cluster, partitioner=lambda key, every, available: every[2]) as producer:
            with pytest.raises(IndexError):
                await producer.send("t", b"value")


async def test_cancelling_send_takes_the_record_back_and_cancelling_its_future_does_not() -> None:
    async with a_cluster(configs={"auto.create.topics.enable": False}) as cluster, make(cluster) as producer:
        asked = cluster.broker.count(ApiKey.METADATA)
        waiting = asyncio.create_task(producer.send("later", b"cancelled"))
        await cluster.broker.until(lambda broker: broker.count(ApiKey.METADATA) > asked)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        cluster.create_topic("later", 1)
        (await producer.send("later", b"sent")).cancel()
        await producer.flush()
        assert cluster.values("later") == [b"sent"]


# Batches


async def test_a_batch_takes_records_up_to_its_size() -> None:
    async with a_cluster() as cluster, make(cluster, max_batch_size=10_000) as producer:
        batch = producer.create_batch()
        count = 0
        while (appended := batch.append(key=b"test key", value=b"test value", timestamp=None)) is not None:
            assert (appended.offset, appended.crc) == (count, None)
            count += 1
        assert batch.closed()
        assert batch.record_count() == count > 100
        assert 10_000 - appended_size(b"test key", b"test value") < batch.size() <= 10_000
        before = await producer.send_and_wait("t", b"before", partition=1)
        metadata = await (await producer.send_batch(batch, "t", partition=1))
        assert (metadata.partition, metadata.offset) == (1, before.offset + 1)
        assert cluster.values("t", 1) == [b"before", *[b"test value"] * count]


def appended_size(key: bytes, value: bytes) -> int:
    return len(key) + len(value) + 9


async def test_only_the_first_record_of_a_batch_may_be_too_large() -> None:
    producer = AIOKafkaProducer(max_batch_size=1000)
    batch = producer.create_batch()
    assert batch.append(key=None, value=bytes(1001), timestamp=None) is not None
    batch = producer.create_batch()
    assert batch.append(key=None, value=b"short", timestamp=None) is not None
    assert batch.append(key=None, value=bytes(1001), timestamp=None) is None
    assert batch.append(key=None, value=b"short", timestamp=None) is None, "it is closed"


async def test_a_batch_is_as_large_as_the_one_that_is_sent() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        batch = producer.create_batch()
        for number in range(100):
            headers = [("name", b"v" * number), ("null", None)]
            batch.append(key=None, value=bytes(number), timestamp=1_000_000 - number * 50, headers=headers)
        await (await producer.send_batch(batch, "t", partition=0))
        (sent,) = cluster.log("t").batches()
        assert sent.size_in_bytes == batch.size()


async def test_a_batch_without_records_is_not_sent() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        assert await (await producer.send_batch(producer.create_batch(), "t", partition=0)) is None
        assert cluster.broker.count(ApiKey.PRODUCE) == 0


async def test_a_batch_fails_with_its_first_error() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        batch = producer.create_batch()
        for number in range(3):
            batch.append(key=None, value=b"%d" % number, timestamp=None)
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        future = await producer.send_batch(batch, "t", partition=0)
        with pytest.raises(errors.TopicAuthorizationFailedError):
            await future


# Trouble


async def test_idempotent_retries_write_nothing_twice() -> None:
    async with a_cluster() as cluster, make(cluster, enable_idempotence=True) as producer:
        cluster.broker.script(ApiKey.PRODUCE, drop(appended=True), drop(appended=True))
        metadata = await producer.send_and_wait("t", b"value", partition=0)
        assert (metadata.offset, cluster.values("t")) == (0, [b"value"])


@pytest.mark.parametrize("idempotent", [False, True])
async def test_retries_keep_the_order(idempotent: bool) -> None:
    async with a_cluster(1) as cluster, make(cluster, enable_idempotence=idempotent) as producer:
        refused = error(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        cluster.broker.script(ApiKey.PRODUCE, refused, answer, refused, refused)
        futures = []
        for number in range(20):
            futures.append(await producer.send("t", b"%d" % number))
            await asyncio.sleep(0)
        assert [metadata.offset for metadata in await asyncio.gather(*futures)] == list(range(20))
        assert cluster.values("t") == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "TopicAuthorizationFailedError"),
        (ErrorCode.MESSAGE_TOO_LARGE, "MessageSizeTooLargeError"),
        (ErrorCode.INVALID_TIMESTAMP, "InvalidTimestampError"),
        (ErrorCode.INVALID_RECORD, "UnknownError"),
    ],
)
async def test_what_a_broker_refuses_has_aiokafkas_name(code: ErrorCode, name: str) -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        cluster.broker.script(ApiKey.PRODUCE, error(code))
        with pytest.raises(getattr(errors, name)) as raised:
            await producer.send_and_wait("t", b"value")
        cause: Any = raised.value.__cause__
        assert (cause.code, cause.outcome) == (code, Outcome.NOT_SENT)


@virtual
async def test_an_unknown_topic_is_told_after_request_timeout_ms(world: World) -> None:
    loop = asyncio.get_running_loop()
    async with a_cluster(configs={"auto.create.topics.enable": False}) as cluster, make(cluster) as producer:
        for call in (producer.send("unknown", b"value"), producer.partitions_for("unknown")):
            began = loop.time()
            with pytest.raises(errors.UnknownTopicOrPartitionError, match="does not exist") as raised:
                await call
            assert isinstance(raised.value, errors.KafkaTimeoutError)
            assert 40 <= loop.time() - began < 41


@virtual
async def test_no_memory_is_a_time_out(world: World) -> None:
    sizes = {"max_batch_size": 1000, "buffer_memory": 4000, "max_block_ms": 500}
    async with a_cluster(1) as cluster, make(cluster, request_timeout_ms=5000, **sizes) as producer:
        await producer.send_and_wait("t", b"first")
        world.hung_until = asyncio.get_running_loop().time() + 100
        futures: list[asyncio.Future[Any]] = []

        async def fill() -> None:
            while True:
                futures.append(await producer.send("t", bytes(900)))

        with pytest.raises(errors.KafkaTimeoutError):
            await fill()
        assert futures
        for future in futures:
            with pytest.raises(errors.KafkaTimeoutError):
                await future


@virtual
async def test_without_an_answer_a_record_times_out_by_either_name(world: World) -> None:
    loop = asyncio.get_running_loop()
    async with a_cluster(1) as cluster, make(cluster, request_timeout_ms=5000) as producer:
        await producer.send_and_wait("t", b"first")
        world.hung_until = (began := loop.time()) + 100
        with pytest.raises(errors.RequestTimedOutError) as raised:
            await producer.send_and_wait("t", b"lost")
        assert isinstance(raised.value, errors.KafkaTimeoutError)
        assert 5 <= loop.time() - began < 6
        cause: Any = raised.value.__cause__
        assert cause.ledger, "what the time was spent on"


@virtual
async def test_a_record_that_is_too_late_is_told_by_the_last_trouble(world: World) -> None:
    async with a_cluster(1) as cluster, make(cluster, request_timeout_ms=2000) as producer:
        cluster.broker.always(ApiKey.PRODUCE, error(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        with pytest.raises(errors.NotLeaderForPartitionError) as raised:
            await producer.send_and_wait("t", b"value")
        assert isinstance(raised.value, errors.KafkaTimeoutError)


@virtual
async def test_without_a_leader_a_record_is_told_so(world: World) -> None:
    async with a_cluster(nodes=2) as cluster, make(cluster, request_timeout_ms=5000) as producer:
        cluster.create_topic("led", assignments=[(1,)])
        await producer.send_and_wait("led", b"value")
        await cluster.stop_node(1)
        await asyncio.sleep(1)
        with pytest.raises(errors.LeaderNotAvailableError):
            await producer.send_and_wait("led", b"value")


@virtual
async def test_an_idempotent_producer_tries_for_ever(world: World) -> None:
    async with a_cluster(1) as cluster, make(cluster, enable_idempotence=True) as producer:
        await producer.send_and_wait("t", b"first")
        world.hung_until = asyncio.get_running_loop().time() + 3600
        assert (await producer.send_and_wait("t", b"second")).offset == 1
        assert cluster.values("t") == [b"first", b"second"]
