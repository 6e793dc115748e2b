"""The drop-in class has the behaviour of aiokafka's producer."""

from __future__ import annotations

import asyncio
import ssl
import time
import weakref
from pathlib import Path
from typing import Any

import pytest

from aioproducer.compat.aiokafka import AIOKafkaProducer, errors
from aioproducer.errors import ConfigException
from aioproducer.protocol.api_key import ApiKey
from tests.broker.raw_clients.sasl import PASSWORD
from tests.broker.raw_clients.tls import tls_cluster
from tests.compat.clusters import a_cluster, make
from tests.support.leaks import no_leaks as no_leaks
from tests.support.scripted_broker import Held, ScriptedCluster
from tests.support.security.certificates import make_certificates
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


# Life


async def test_it_starts_knows_partitions_and_stops() -> None:
    async with a_cluster() as cluster:
        producer = make(cluster)
        await producer.start()
        assert await producer.partitions_for("t") == {0, 1}
        await producer.stop()
        await producer.stop()
        with pytest.raises(errors.ProducerClosed):
            _ = await producer.send("t", b"value")
        with pytest.raises(errors.ProducerClosed):
            _ = await producer.send_batch(producer.create_batch(), "t", partition=0)
        with pytest.raises(errors.ProducerClosed, match="make a new one"):
            await producer.start()


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


async def test_a_producer_that_was_not_stopped_warns_and_is_collected() -> None:
    async with a_cluster() as cluster:
        producer = make(cluster)
        await producer.start()
        underneath, reference = producer.kafka_producer, weakref.ref(producer)
        held = [producer]
        del producer
        with pytest.warns(ResourceWarning, match="Unclosed AIOKafkaProducer"):
            held.clear()
        assert reference() is None
        await underneath.close()


def test_a_producer_may_be_made_while_no_loop_runs() -> None:
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


async def test_another_loop_than_its_own_is_an_error() -> None:
    other = asyncio.new_event_loop()
    with pytest.warns(DeprecationWarning, match="'loop'"):
        producer = AIOKafkaProducer(loop=other)
    other.close()
    with pytest.raises(errors.IllegalStateError, match="another event loop"):
        await producer.start()


async def test_with_tls_and_a_password(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    who: dict[str, Any] = {
        "security_protocol": "SASL_SSL",
        "ssl_context": ssl.create_default_context(cafile=str(certificates.authority)),
        "sasl_plain_username": "alice",
    }
    async with tls_cluster(certificates, "SASL_SSL") as cluster:
        who["bootstrap_servers"] = cluster.bootstrap_servers
        async with AIOKafkaProducer(sasl_plain_password=PASSWORD, **who) as producer:
            await producer.send_and_wait("t", b"value")
            assert PASSWORD not in repr(vars(producer))
        assert [record.value for record in cluster.log("t").records()] == [b"value"]
        stranger = AIOKafkaProducer(sasl_plain_password="guessed", **who)
        with pytest.raises(errors.KafkaConnectionError, match="alice"):
            await stranger.start()


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
def test_an_impossible_argument_is_a_value_error(arguments: dict[str, Any]) -> None:
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
        assert (metadata.topic_partition, metadata.log_start_offset) == (("t", 1), None)
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


async def test_with_acks_0_futures_end_with_none() -> None:
    async with a_cluster() as cluster, make(cluster, acks=0) as producer:
        futures = [await producer.send("t", b"value", partition=partition) for partition in (0, 1)]
        results: list[Any] = await asyncio.gather(*futures)
        assert results == [None, None]
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
            _ = await producer.send("t", "*" * 2000, key="some key")


async def test_an_error_of_a_serializer_is_raised_as_it_is() -> None:
    async with a_cluster() as cluster, make(cluster, value_serializer=lambda value: 1 / value) as producer:
        with pytest.raises(ZeroDivisionError):
            _ = await producer.send("t", 0)


async def test_a_value_or_key_that_is_not_bytes_is_a_type_error_and_nothing_is_sent() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        with pytest.raises(TypeError, match="the value is of type str"):
            _ = await producer.send("t", "text")
        with pytest.raises(TypeError, match="the key is of type int"):
            _ = await producer.send("t", b"value", key=1)
        wrong: Any = [("name", "text")]
        with pytest.raises(TypeError, match="header"):
            _ = await producer.send("t", b"value", headers=wrong)
        await producer.flush()
        assert cluster.broker.count(ApiKey.PRODUCE) == 0


async def test_misuse_is_an_assertion_error() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        with pytest.raises(AssertionError, match="a key or a value"):
            _ = await producer.send("t")
        for partition in (-1, 2):
            with pytest.raises(AssertionError, match=f"has no partition {partition}: it has 0 to 1"):
                _ = await producer.send("t", b"value", partition=partition)


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


@virtual
async def test_a_record_lingers_unless_its_batch_is_full(world: World) -> None:
    loop = asyncio.get_running_loop()
    async with a_cluster(1) as cluster, make(cluster, linger_ms=2000, max_batch_size=300) as producer:
        await producer.partitions_for("t")
        began = loop.time()
        await producer.send_and_wait("t", b"lingers")
        assert 2 <= loop.time() - began < 3
        began = loop.time()
        first, *_ = [await producer.send("t", bytes(100)) for _ in range(4)]
        await first
        assert loop.time() - began < 1


async def test_flush_does_not_wait_for_linger() -> None:
    async with a_cluster() as cluster, make(cluster, linger_ms=60_000) as producer:
        futures = [await producer.send("t", b"value") for _ in range(2)]
        assert not any(future.done() for future in futures)
        await producer.flush()
        assert all(future.done() for future in futures)


async def test_flush_returns_at_once_before_start_and_after_stop() -> None:
    async with a_cluster() as cluster:
        producer = make(cluster)
        await producer.flush()
        await producer.start()
        await producer.stop()
        await producer.flush()


async def test_flush_waits_for_what_stop_delivers() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        held = Held()
        cluster.broker.script(ApiKey.PRODUCE, held)
        future = await producer.send("t", b"value")
        await cluster.broker.received(ApiKey.PRODUCE)
        stopping = asyncio.create_task(producer.stop())
        await asyncio.sleep(0)
        flushing = asyncio.create_task(producer.flush())
        await asyncio.sleep(0)
        assert not flushing.done()
        held.release()
        await flushing
        assert future.done()
        await stopping


async def test_timestamps_are_the_records_own_or_the_brokers() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        cluster.create_topic("stamped", 1, configs={"message.timestamp.type": "LogAppendTime"})
        now = await producer.send_and_wait("t", b"value", partition=0)
        assert (abs(now.timestamp - time.time() * 1000) < 20_000, now.timestamp_type) == (True, 0)
        given = await producer.send_and_wait("t", b"value", partition=0, timestamp_ms=123123123)
        assert (given.timestamp, given.timestamp_type) == (123123123, 0)
        stamped = await producer.send_and_wait("stamped", b"value", timestamp_ms=123123123)
        assert (stamped.timestamp > 123123123, stamped.timestamp_type) == (True, 1)
        with pytest.raises(errors.IllegalArgumentError, match="timestamp_ms is -5; it must be an int from 0 on"):
            _ = await producer.send("t", b"value", timestamp_ms=-5)


async def test_a_partitioner_gets_the_bytes_of_the_key() -> None:
    calls: list[Any] = []

    def second(key: bytes | None, every: list[int], available: list[int]) -> int:
        calls.append((key, every, available))
        return every[1]

    async with a_cluster() as cluster:
        async with make(cluster, partitioner=second, key_serializer=str.encode) as producer:
            assert (await producer.send_and_wait("t", b"value", key="k")).partition == 1
            batch = producer.create_batch()
            batch.append(key="k", value=b"value", timestamp=None)
            assert (await (await producer.send_batch(batch, "t", partition=None))).partition == 1
        assert calls == [(b"k", [0, 1], [0, 1]), (None, [0, 1], [0, 1])]
        async with make(cluster, partitioner=lambda key, every, available: every[2]) as producer:
            with pytest.raises(IndexError):
                _ = await producer.send("t", b"value")


async def test_cancelling_send_takes_the_record_back_and_cancelling_its_future_does_not() -> None:
    async with a_cluster(configs={"auto.create.topics.enable": False}) as cluster, make(cluster) as producer:
        calls = cluster.broker.count(ApiKey.METADATA)
        waiting = asyncio.create_task(producer.send("later", b"cancelled"))
        await cluster.broker.until(lambda broker: broker.count(ApiKey.METADATA) > calls)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            _ = await waiting
        cluster.create_topic("later", 1)
        (await producer.send("later", b"sent")).cancel()
        await producer.flush()
        assert cluster.values("later") == [b"sent"]
