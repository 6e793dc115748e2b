from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from aioproducer import Delivery, DeliveryError, KafkaProducer, Outcome, ProducerRecord, TimestampType
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import (
    BufferExhaustedException,
    ConfigException,
    IllegalArgumentException,
    IllegalStateException,
    InvalidTimestampException,
    InvalidTopicException,
    KafkaError,
    RecordTooLargeException,
    SerializationException,
    TimeoutException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.diagnosis.failure_log import MOST_LINES
from aioproducer.producer.parking.parked_record import PARKED_COST
from aioproducer.producer.parking.parking_lot import TRIAL
from aioproducer.producer.producer import core_of
from aioproducer.producer.scheduling.schedule import MOST_DUE
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.metadata import MetadataResponseTopic
from aioproducer.protocol.messages.produce import ProduceResponse
from aioproducer.testing.simulation.listening import listen_on_network
from aioproducer.testing.simulation.network.transport import SimulatedTransport
from aioproducer.types import PartitionInfo
from tests.support.inside import parts_of
from tests.support.leaks import no_leaks as no_leaks
from tests.support.manual_clock import ManualClock
from tests.support.producing import all_memory_free, end_of, make_producer, turns
from tests.support.scripted_broker import (
    ScriptedCluster,
    after,
    drop,
    edited,
    error,
    never,
    raw,
    wrong_correlation_id,
)
from tests.support.turns import shortest_turns as shortest_turns
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@asynccontextmanager
async def running(
    *, nodes: int = 1, topics: dict[str, int] | None = None, **config: Any
) -> AsyncIterator[tuple[ScriptedCluster, KafkaProducer[Any, Any]]]:
    async with ScriptedCluster(nodes) as cluster:
        for topic, partitions in (topics or {"t": 1}).items():
            cluster.create_topic(topic, partitions)
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            yield cluster, producer


# Life


async def test_start_and_stop_without_a_broker() -> None:
    producer = make_producer("127.0.0.1:1")
    await producer.start()
    await producer.start()
    await producer.close()
    await producer.close()


async def test_start_and_stop_with_connections_open() -> None:
    async with running(topics={"t": 3}) as (cluster, producer):
        for partition in range(3):
            assert (await producer.send("t", b"v", partition=partition)).offset == 0
    # Leaving the block closed the producer, and no_leaks finds whatever it forgot.
    assert not cluster.broker.connections


@virtual
async def test_the_caller_of_send_does_no_io(world: World) -> None:
    """The Sender and the links connect and write requests, whatever the call."""
    doing_io: set[asyncio.Task[Any] | None] = set()

    class Watched(SimulatedTransport):
        def writelines(self, list_of_data: Any) -> None:
            doing_io.add(asyncio.current_task())
            super().writelines(list_of_data)

    loop = asyncio.get_running_loop()
    connect = loop.create_connection

    async def create_connection(*arguments: Any, **options: Any) -> Any:
        doing_io.add(asyncio.current_task())
        transport, protocol = await connect(*arguments, **options)
        transport.__class__ = Watched
        return transport, protocol

    loop.create_connection = create_connection  # type: ignore[method-assign]
    async with running(linger_ms=10) as (cluster, producer):
        parked = producer.send("t", b"0")
        _ = await producer.enqueue("t", b"1")
        await parked
        sent = [producer.send("t", b"2"), await producer.enqueue("t", b"3")]
        await producer.send_many("t", [b"4"])
        await producer.flush()
        assert [delivery.result().offset for delivery in sent] == [2, 3]
        assert cluster.values("t") == numbered(5)
    assert asyncio.current_task() not in doing_io
    assert "aioproducer sender" in {task.get_name() for task in doing_io if task is not None}


def test_the_constructor_needs_no_loop_and_connects_to_nothing() -> None:
    producer = KafkaProducer(bootstrap_servers="127.0.0.1:1")
    assert producer.config.bootstrap_servers == ("127.0.0.1:1",)
    assert producer.metrics()["buffer-total-bytes"] == 33554432


@pytest.mark.parametrize("server", ["localhost", "localhost:", ":9092", "localhost:0", "localhost:65536", "a b"])
def test_a_bootstrap_server_that_is_none(server: str) -> None:
    with pytest.raises(ConfigException, match=r"bootstrap\.servers"):
        KafkaProducer(bootstrap_servers=server)


def test_configs_from_a_properties_text() -> None:
    producer = KafkaProducer.from_config("bootstrap.servers = localhost:9092\nlinger.ms=7\n# a comment\nacks=1")
    assert (producer.config.linger_ms, producer.config.acks) == (7, "1")


async def test_its_repr_says_what_it_does() -> None:
    producer = make_producer("127.0.0.1:1", client_id="a\nb")
    assert repr(producer) == r"<KafkaProducer 'a\nb' of 127.0.0.1:1: not started>"
    async with running(linger_ms=50_000, delivery_timeout_ms=60_000, topics={"t": 2}) as (cluster, producer):
        name = f"<KafkaProducer {producer.config.client_id!r} of {cluster.bootstrap_servers}:"
        assert repr(producer) == f"{name} running; 0 batches have not ended>"
        await producer.partitions_for("t")
        sent = [producer.send("t", b"v", partition=0)]
        assert repr(producer) == f"{name} running; 1 batch has not ended>"
        sent += [producer.send("t", b"v", partition=1), producer.send("unknown", b"v")]
        pending = "2 batches have not ended; 1 record waits for metadata or memory"
        assert repr(producer) == f"{name} running; {pending}>"
        assert await asyncio.to_thread(repr, producer) == f"{name} running; {pending}>"
        closing = asyncio.ensure_future(producer.close())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert repr(producer).startswith(f"{name} closing; ")
        await closing
        assert repr(producer) == f"{name} closed>"
        assert [delivery.done() for delivery in sent] == [True] * 3


async def test_the_repr_of_a_producer_that_has_failed_says_why() -> None:
    async with ScriptedCluster() as cluster, make_producer(cluster.bootstrap_servers) as producer:
        parts_of(producer).supervisor.crash(ValueError("so long " * 1000))
        said = repr(producer)
        assert ": failed: KafkaError: the producer failed: ValueError: so long" in said
        assert len(said) < 600


def test_no_repr_has_secrets_and_many_servers_are_counted() -> None:
    producer = KafkaProducer(
        bootstrap_servers=[f"b{number}:1" for number in range(100)],
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="alice",
        sasl_plain_password="planted",
        client_id="me",
    )
    assert repr(producer) == "<KafkaProducer 'me' of b0:1,b1:1,b2:1 and 97 more: not started>"


def test_even_one_whose_configs_were_refused_has_a_repr() -> None:
    """Debuggers and tracebacks with local variables show it."""
    wrong: list[Any] = [{"acks": "2"}, {"compression_type": "gzip", "bootstrap_servers": "nothing"}]
    for refused in wrong:
        producer = KafkaProducer.__new__(KafkaProducer)
        with pytest.raises(ConfigException):
            KafkaProducer.__init__(producer, **{"bootstrap_servers": "b:1", **refused})
        assert "KafkaProducer object" in repr(producer)


async def test_an_unstarted_producer_says_so() -> None:
    producer = make_producer("127.0.0.1:1")
    for use in (producer.flush, lambda: producer.partitions_for("t"), lambda: producer.enqueue("t", b"v")):
        with pytest.raises(IllegalStateException, match="not started"):
            await use()
    with pytest.raises(IllegalStateException, match="not started"):
        _ = producer.send("t", b"v")
    await producer.close()


async def test_a_closed_producer_says_so() -> None:
    async with running() as (_, producer):
        await producer.close()
        with pytest.raises(IllegalStateException, match="closed"):
            _ = producer.send("t", b"v")
        with pytest.raises(IllegalStateException, match="closed"):
            _ = await producer.enqueue("t", b"v")
        with pytest.raises(IllegalStateException, match="closed"):
            _ = producer.send("t", bytes(10_000_000))
        with pytest.raises(IllegalStateException, match="closed"):
            await producer.start()
        with pytest.raises(IllegalStateException, match="closed"):
            await producer.partitions_for("unknown")
        await producer.flush()


def test_another_loop_says_so() -> None:
    async def start(producer: KafkaProducer) -> None:
        await producer.start()

    async def use(producer: KafkaProducer) -> None:
        for misuse in (producer.flush, producer.close, producer.start, lambda: producer.enqueue("t", b"v")):
            with pytest.raises(IllegalStateException, match="another event loop"):
                await misuse()
        with pytest.raises(IllegalStateException, match="another event loop"):
            _ = producer.send("t", b"v")

    producer = make_producer("127.0.0.1:1")
    asyncio.run(start(producer))
    asyncio.run(use(producer))


async def test_another_thread_says_so() -> None:
    async with running() as (_, producer):
        raised: list[BaseException] = []

        def use() -> None:
            try:
                _ = producer.send("t", b"v")
            except IllegalStateException as error:
                raised.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert "another event loop" in str(raised[0])
        assert (await producer.send("t", b"v")).offset == 0


# The way of a record


async def test_records_sent_before_metadata_arrive_in_order() -> None:
    async with running(topics={"t": 1, "u": 1}) as (cluster, producer):
        for value in numbered(200):
            _ = producer.send("t", value)
            _ = producer.send("u", value)
        assert producer.metrics()["parked-bytes"] > 0
        await producer.flush()
        assert cluster.values("t") == cluster.values("u") == numbered(200)


async def test_a_delivered_record_is_read_unchanged() -> None:
    async with running() as (cluster, producer):
        sent: list[dict[str, Any]] = [
            {"value": b"v", "key": b"k", "timestamp_ms": 1_600_000_000_000, "headers": [("a", b"1"), ("a", None)]},
            {"value": None, "key": None, "timestamp_ms": 1_600_000_000_005},
            {"value": b"", "key": b"", "timestamp_ms": 1_599_999_999_000, "headers": []},
            {"value": bytes(range(256)), "key": None, "timestamp_ms": 0, "headers": [("", b""), ("ü", b"x")]},
        ]
        metadata = [await d for d in [producer.send("t", **record) for record in sent]]
        read = list(cluster.log("t").records())
        for number, (record, got, told) in enumerate(zip(sent, read, metadata, strict=True)):
            assert (got.offset, got.key, got.value) == (number, record["key"], record["value"])
            assert got.timestamp_ms == told.timestamp_ms == record["timestamp_ms"]
            assert list(got.headers) == list(record.get("headers", []))
            assert (told.topic, told.partition, told.offset) == ("t", 0, number)
            assert told.timestamp_type is TimestampType.CREATE_TIME
            assert told.serialized_value_size == (-1 if record["value"] is None else len(record["value"]))
            assert told.serialized_key_size == (-1 if record["key"] is None else len(record["key"]))


async def test_headers_survive_parking_and_retries() -> None:
    async with running() as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, drop(), error(ErrorCode.NOT_ENOUGH_REPLICAS))
        _ = await producer.send("t", b"v", headers=[("h", b"1")])
        _ = await (await producer.enqueue("t", b"w", headers=(("h", None),)))
        assert [list(record.headers) for record in cluster.log("t").records()] == [[("h", b"1")], [("h", None)]]


async def test_a_record_object_and_its_misuse() -> None:
    async with running(topics={"t": 2}) as (_, producer):
        record = ProducerRecord("t", b"v", key=b"k", partition=1, timestamp_ms=5, headers=[("a", b"b")])
        metadata = await producer.send(record)
        assert (metadata.partition, metadata.timestamp_ms) == (1, 5)
        assert (await (await producer.enqueue(record))).offset == 1
        with pytest.raises(IllegalArgumentException, match="its own value"):
            _ = producer.send(record, b"another")  # type: ignore[call-overload]
        with pytest.raises(IllegalArgumentException, match="int"):
            _ = producer.send(5)  # type: ignore[call-overload]


async def test_a_record_for_a_known_topic_is_in_a_batch_when_send_returns() -> None:
    async with running(linger_ms=50_000, delivery_timeout_ms=60_000) as (_, producer):
        await producer.partitions_for("t")
        _ = producer.send("t", b"v")
        (queue,) = parts_of(producer).completer.incomplete.queues()
        assert queue.open is not None
        assert (queue.topic, queue.open.count) == ("t", 1)
        assert producer.metrics()["parked-records"] == 0


MISUSE: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"topic": "t", "value": 5}, SerializationException),
    ({"topic": "t", "value": "text"}, SerializationException),
    ({"topic": "t", "key": 1.5}, SerializationException),
    ({"topic": "t", "headers": [("a", "b")]}, SerializationException),
    ({"topic": "t", "headers": [("a",)]}, SerializationException),
    ({"topic": "t", "headers": [(b"a", b"b")]}, SerializationException),
    ({"topic": "t", "partition": -1}, IllegalArgumentException),
    ({"topic": "t", "timestamp_ms": -1}, IllegalArgumentException),
    ({"topic": ""}, IllegalArgumentException),
]


@pytest.mark.parametrize(("arguments", "kind"), MISUSE)
async def test_misuse_raises_and_takes_nothing(arguments: dict[str, Any], kind: type[Exception]) -> None:
    async with running() as (cluster, producer):
        for _ in range(2):  # without metadata, and with it
            with pytest.raises(kind):
                _ = producer.send(**arguments)
            with pytest.raises(kind):
                _ = await producer.enqueue(**arguments)
            await producer.partitions_for("t")
        await producer.flush()
        assert all_memory_free(producer)
        assert cluster.values("t") == []


async def test_serializers() -> None:
    def serialize(value: Any) -> bytes:
        return str(value + 1).encode()

    async with running(value_serializer=serialize, key_serializer=str.encode) as (cluster, producer):
        _ = await producer.send("t", 41, key="k")
        _ = await producer.send("t", None)
        _ = await (await producer.enqueue("t", 1, key=None))
        with pytest.raises(SerializationException, match="value_serializer cannot serialize a str"):
            _ = producer.send("t", "no number")
        assert [(r.key, r.value) for r in cluster.log("t").records()] == [(b"k", b"42"), (None, None), (None, b"2")]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_codecs_end_to_end(codec: str) -> None:
    async with running(compression_type=codec, linger_ms=1) as (cluster, producer):
        values = [b"value %d " % n * 20 for n in range(300)]
        deliveries = [producer.send("t", value) for value in values]
        await producer.flush()
        assert cluster.values("t") == values
        assert [delivery.result().offset for delivery in deliveries] == list(range(300))
        assert {batch.codec.name.lower() for batch in cluster.log("t").batches()} == {codec}


async def test_log_append_time() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1, configs={"message.timestamp.type": "LogAppendTime"})
        async with make_producer(cluster.bootstrap_servers) as producer:
            metadata = await producer.send("t", b"v", timestamp_ms=5)
            assert metadata.timestamp_type is TimestampType.LOG_APPEND_TIME
            assert metadata.timestamp_ms > 5


async def test_a_large_record_has_a_batch_of_its_own() -> None:
    async with running(batch_size=100) as (cluster, producer):
        for value in (b"small", bytes(500_000), b"small again"):
            _ = producer.send("t", value)
        await producer.flush()
        assert [len(value or b"") for value in cluster.values("t")] == [5, 500_000, 11]
        assert all_memory_free(producer)


@pytest.mark.parametrize("codec", ["none", "gzip"])
async def test_a_record_too_large_ends_its_delivery(codec: str) -> None:
    """However small it would be compressed."""
    async with running(compression_type=codec) as (_, producer):
        for topic in ("t", "unknown"):
            ended = await end_of(producer.send(topic, bytes(2_000_000)))
            assert isinstance(ended, RecordTooLargeException)
            assert isinstance(ended, DeliveryError)
            assert ended.outcome is Outcome.NOT_SENT
            with pytest.raises(RecordTooLargeException, match=r"max\.request\.size"):
                _ = await producer.enqueue(topic, bytes(2_000_000))
        assert producer.metrics()["record-error-total"] == 4


async def test_the_callback_of_a_record_that_was_not_let_in_is_called() -> None:
    async with running() as (_, producer):
        ends: asyncio.Queue[Delivery] = asyncio.Queue()
        delivery = producer.send("t", bytes(2_000_000))
        delivery.add_done_callback(ends.put_nowait)
        assert await ends.get() is delivery
        assert isinstance(delivery.exception(), RecordTooLargeException)


async def test_a_refused_record_whose_task_was_just_made_is_raised_there_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running() as (_, producer):
        tasks: list[asyncio.Future[Any]] = [
            asyncio.create_task(producer.send("t", bytes(2_000_000))),  # type: ignore[arg-type]
            asyncio.ensure_future(producer.send("t", bytes(2_000_000))),
        ]
        ended = await asyncio.gather(*tasks, producer.send("t", bytes(2_000_000)), return_exceptions=True)
    assert all(isinstance(error, RecordTooLargeException) for error in ended)
    assert caplog.messages == []


async def test_a_brokers_message_about_a_record_is_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(response: ProduceResponse) -> None:
        answer = response.responses[0].partition_responses[0]
        answer.error_code, answer.error_message = ErrorCode.INVALID_RECORD, "no\n\x1b[31m" + "!" * 30_000

    async with running() as (cluster, producer):
        cluster.broker.always(ApiKey.PRODUCE, edited(refuse))
        ended = await end_of(producer.send("t", b"v"))
        _ = producer.send("t", b"v")
        await producer.flush()
    assert r"no\n\x1b[31m!!!" in str(ended)
    (line,) = caplog.messages
    assert r"no\n\x1b[31m!!!" in line
    assert line.isprintable()
    assert len(line) < 22_000


@pytest.mark.parametrize("hooked", [False, True])
async def test_records_that_are_not_let_in_count_as_errors_but_misuse_does_not(hooked: bool) -> None:
    def serialize(value: Any) -> bytes:
        return b"" + value  # type: ignore[no-any-return]

    config: dict[str, Any] = {"value_serializer": serialize} if hooked else {}
    async with running(max_request_size=1000, **config) as (_, producer):
        _ = await producer.send("t", b"v")
        for value, error in ((bytes(2000), RecordTooLargeException), ("text", SerializationException)):
            with pytest.raises(error):
                _ = await producer.send("t", value)
            with pytest.raises(error):
                _ = await producer.enqueue("t", value)
        with pytest.raises(IllegalArgumentException):
            _ = producer.send("t", b"v", partition=-1)
        with pytest.raises(IllegalArgumentException):
            _ = await producer.enqueue("t", b"v", timestamp_ms=-1)
        found = producer.metrics()
    assert found["record-error-total"] == found.topic("t")["record-error-total"] == 4


@virtual
async def test_metrics_are_measured_as_configured(world: World) -> None:
    config: dict[str, Any] = {
        "metrics_sample_window_ms": 1000,
        "metrics_num_samples": 3,
        "metrics_recording_level": "DEBUG",
    }
    async with running(client_id="me", **config) as (_, producer):
        for _number in range(6):
            _ = await producer.send("t", b"v")
        found = producer.metrics()
        # Two windows are taken as whole, and the present one has just begun.
        assert found["record-send-rate"] == pytest.approx(3, rel=0.1)
        assert found.topic("t")["record-queue-time-max"] >= 0
        assert {name.tag("client-id") for name in found} == {"me"}
        await asyncio.sleep(3.1)
        assert producer.metrics()["record-send-rate"] == 0


@virtual
async def test_topics_that_are_forgotten_are_not_measured_any_more(world: World) -> None:
    config: dict[str, Any] = {"metadata_max_idle_ms": 5000, "metadata_max_age_ms": 2000}
    async with running(**config) as (_, producer):
        _ = await producer.send("t", b"v")
        assert producer.metrics().topic("t")["record-send-total"] == 1
        await asyncio.sleep(4)
        assert len(producer.metrics().topic("t")) > 0
        await asyncio.sleep(6)
        assert len(producer.metrics().topic("t")) == 0
        assert producer.metrics()["record-send-total"] == 1
        _ = await producer.send("t", b"v")
        assert producer.metrics().topic("t")["record-send-total"] == 1


async def test_topics_are_created_by_the_broker() -> None:
    async with (
        EmbeddedCluster(configs={"num.partitions": 3}) as cluster,
        make_producer(cluster.bootstrap_servers) as producer,
    ):
        assert (await producer.send("new", b"v")).offset == 0
        assert len(await producer.partitions_for("new")) == 3


async def test_partitions_for_gives_leaders_and_replicas() -> None:
    async with ScriptedCluster(3) as cluster:
        cluster.create_topic("t", assignments=[[1, 0], [2, 1]])
        cluster.move_leader("t", 0, 0)
        await cluster.stop_node(2)
        async with make_producer(cluster.bootstrap_servers) as producer:
            moved, left = await producer.partitions_for("t")
        epochs = [cluster.topic("t").partitions[index].leader_epoch for index in range(2)]
        assert moved == PartitionInfo("t", 0, 0, epochs[0], (1, 0), (1, 0), ())
        assert left == PartitionInfo("t", 1, 1, epochs[1], (2, 1), (1,), (2,))


async def test_a_clock_in_place_of_the_machines_stamps_records() -> None:
    clock = ManualClock()
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1, configs={"message.timestamp.type": "CreateTime"})
        producer = make_producer(cluster.bootstrap_servers)
        producer._clock = clock
        async with producer:
            deliveries = [producer.send("t", b"before metadata")]
            await deliveries[0]
            for advance in (1, -5):
                clock.advance(advance)
                deliveries.append(producer.send("t", b"later"))
            deliveries.append(producer.send("t", b"stamped", timestamp_ms=1))
            await producer.flush()
        stamps = [1_700_000_000_000, 1_700_000_001_000, 1_699_999_996_000, 1]
        assert [delivery.result().timestamp_ms for delivery in deliveries] == stamps
        assert [record.timestamp_ms for record in cluster.log("t").records()] == stamps


async def test_linger_counts_from_the_first_record() -> None:
    """A slow steady stream is sent: here the next record comes before the linger of the last would be over."""
    async with running(linger_ms=60, delivery_timeout_ms=20_000) as (_, producer):
        _ = await producer.partitions_for("t")
        first = producer.send("t", b"v")
        count = 1
        while not first.done():
            await asyncio.sleep(0.005)
            _ = producer.send("t", b"v")
            count += 1
            assert count < 1000
        assert first.result().offset == 0


# What max.block.ms bounds


@virtual
async def test_an_unknown_topic_names_itself(world: World) -> None:
    async with (
        EmbeddedCluster(configs={"auto.create.topics.enable": "false"}, listen=listen_on_network) as cluster,
        make_producer(cluster.bootstrap_servers, max_block_ms=200) as producer,
    ):
        ended = await end_of(producer.send("nowhere", b"v"))
        assert isinstance(ended, TimeoutException)
        assert isinstance(ended, DeliveryError)
        assert ended.outcome is Outcome.NOT_SENT
        for text in ("nowhere", "max.block.ms", "UNKNOWN_TOPIC_OR_PARTITION"):
            assert text in str(ended)
        with pytest.raises(TimeoutException, match="UNKNOWN_TOPIC_OR_PARTITION"):
            _ = await producer.enqueue("nowhere", b"v")
        with pytest.raises(TimeoutException, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await producer.partitions_for("nowhere")


@pytest.mark.parametrize("name", ["a\ud800", "a" * 40_000, "é" * 20_000])
async def test_a_topic_name_that_no_request_can_have_harms_no_other_topic(name: str) -> None:
    """It would be in every request for metadata from then on, and none of these could be written."""
    async with running() as (_, producer):
        for send in (producer.send, producer.enqueue, producer.send_many):
            with pytest.raises(IllegalArgumentException, match="the topic is '"):
                await send(name, b"v")
        with pytest.raises(IllegalArgumentException, match="the topic is"):
            await producer.partitions_for(name)
        with pytest.raises(IllegalArgumentException, match="the topic is"):
            _ = producer.send(ProducerRecord(name, b"v"))
        await producer.send("t", b"v")
        await producer.partitions_for("t")
        assert all_memory_free(producer)


@pytest.mark.parametrize("batch_size", [16_384, 1 << 20])  # read in the loop, and in a thread
async def test_a_timestamp_that_the_topic_does_not_allow_fails_its_record_alone(batch_size: int) -> None:
    filler = [bytes(1000)] * (batch_size // 1200)
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, linger_ms=1000, batch_size=batch_size) as producer:
            await producer.partitions_for("t")
            rest = [producer.send("t", value) for value in filler]
            wrong = [producer.send("t", b"nanoseconds", timestamp_ms=time.time_ns()) for _ in range(2)]
            rest.append(producer.send("t", b"last"))
            await producer.flush()
            for delivery in wrong:
                error = delivery.exception()
                assert isinstance(error, InvalidTimestampException)
                assert "the record's timestamp is out of range" in str(error)
                assert error.outcome is Outcome.NOT_SENT
            assert [delivery.result().offset for delivery in rest] == [*range(len(rest))]


async def test_a_topic_name_that_is_not_allowed_fails_at_once() -> None:
    async with running() as (_, producer):
        assert isinstance(await end_of(producer.send("no spaces allowed", b"v")), InvalidTopicException)
        with pytest.raises(InvalidTopicException):
            _ = await producer.enqueue("no spaces allowed", b"v")


@asynccontextmanager
async def talker(says: bytes, *, waits: bool = True) -> AsyncIterator[str]:
    """A server that says something to whoever connects, once it was spoken to."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if waits:
                await reader.read(1)
            writer.write(says)
            await reader.read()
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.sleep(0)
        await server.wait_closed()


STRANGERS = {
    "HTTP": (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "HTTP"),
    "TLS": (bytes.fromhex("15030300020250"), "TLS"),
    "SSH": (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
    "negative": (b"\xff\xff\xff\xff", "negative"),
    "nonsense": (b"\0\0\0\x06abcdef", "API_VERSIONS"),
}


@pytest.mark.parametrize("stranger", STRANGERS)
async def test_a_port_that_is_no_kafka_is_named_with_the_cause(stranger: str) -> None:
    says, hint = STRANGERS[stranger]
    async with talker(says) as server, make_producer(server, max_block_ms=1000) as producer:
        ended = await end_of(producer.send("t", b"v"))
        assert isinstance(ended, TimeoutException)
        assert hint in str(ended)
        assert server in str(ended)


async def test_an_unreachable_broker_is_named_with_the_cause() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: nobody else will
        server = f"127.0.0.1:{held.getsockname()[1]}"
        async with make_producer(server, max_block_ms=1000) as producer:
            ended = await end_of(producer.send("t", b"v"))
            assert isinstance(ended, TimeoutException)
            assert server in str(ended)
            assert "Connect call failed" in str(ended) or "refused" in str(ended)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70, ".leading.dot"])
async def test_a_host_name_that_is_none_is_named(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str, port: int, **hints: Any) -> list[tuple[Any, ...]]:
        # In no other thread, whose turn may come too late; and no name server is asked.
        if host.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return list(socket.getaddrinfo(host, port, **hints))

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    async with make_producer(f"{host}:9092", max_block_ms=300) as producer:
        ended = await end_of(producer.send("t", b"v"))
        assert isinstance(ended, TimeoutException)
        assert host in str(ended)


@virtual
async def test_a_broker_that_does_not_answer_is_named(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.broker.always(ApiKey.API_VERSIONS, never())
        config = {"max_block_ms": 250, "socket_connection_setup_timeout_ms": 20}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            ended = await end_of(producer.send("t", b"v"))
            assert isinstance(ended, TimeoutException)
            assert "was not ready within" in str(ended)


@virtual
async def test_metadata_that_cannot_be_had_is_named(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.broker.always(ApiKey.METADATA, wrong_correlation_id())
        async with make_producer(cluster.bootstrap_servers, max_block_ms=250) as producer:
            assert "METADATA" in str(await end_of(producer.send("t", b"v")))


async def test_a_partition_that_does_not_exist_yet_is_waited_for() -> None:
    async with ScriptedCluster() as cluster:
        topic = cluster.create_topic("t", 1)
        hidden = cluster.create_topic("hidden", 3)
        async with make_producer(cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"v")
            waiting = producer.send("t", b"w", partition=2)
            other = producer.send("t", b"x", partition=0)
            assert (await other).offset == 1
            assert not waiting.done()
            for partition in hidden.partitions[1:]:
                partition.topic = "t"
                topic.partitions.append(partition)
            assert (await waiting).partition == 2


@virtual
async def test_a_partition_that_never_exists_is_named(world: World) -> None:
    async with running() as (_, producer):
        _ = await producer.send("t", b"v")
        ended = await end_of(producer.send("t", b"w", partition=7))
        assert isinstance(ended, TimeoutException)
        assert "partition 7" in str(ended)
        assert "has 1 partition:" in str(ended)


@virtual
async def test_a_partition_that_never_exists_is_named_before_metadata_too(world: World) -> None:
    async with running() as (_, producer):
        assert "partition 7" in str(await end_of(producer.send("t", b"w", partition=7)))


# Back-pressure

TINY: dict[str, Any] = {"buffer_memory": 10_000, "batch_size": 1000}


async def test_enqueue_waits_for_memory() -> None:
    gate = asyncio.Event()
    async with running(**TINY) as (cluster, producer):
        _ = await producer.partitions_for("t")
        cluster.broker.always(ApiKey.PRODUCE, after(gate))
        tasks = [asyncio.create_task(producer.enqueue("t", bytes(800))) for _ in range(10)]
        await cluster.broker.received(ApiKey.PRODUCE)
        assert sum(task.done() for task in tasks) == 4
        gate.set()
        deliveries = await asyncio.gather(*tasks)
        assert [(await delivery).offset for delivery in deliveries] == list(range(10))
        assert all_memory_free(producer)


@virtual
async def test_memory_that_never_comes_is_named(world: World) -> None:
    async with running(**TINY, max_block_ms=400) as (cluster, producer):
        _ = await producer.partitions_for("t")
        cluster.broker.always(ApiKey.PRODUCE, never())
        for _ in range(4):
            _ = await producer.enqueue("t", bytes(800))
        with pytest.raises(BufferExhaustedException, match=r"9\d\d\d of buffer\.memory=10000"):
            _ = await producer.enqueue("t", bytes(800))
        ended = await end_of(producer.send("t", bytes(800)))
        assert isinstance(ended, BufferExhaustedException)
        assert isinstance(ended, DeliveryError)
        assert ended.outcome is Outcome.NOT_SENT
        await producer.close(timeout=0)
        assert all_memory_free(producer)


@virtual
async def test_parked_records_have_a_bound_of_their_own(world: World) -> None:
    gate = asyncio.Event()
    async with running(parked_memory=3 * (900 + PARKED_COST)) as (cluster, producer):
        cluster.broker.script(ApiKey.METADATA, after(gate))
        deliveries = [producer.send("t", bytes(800)) for _ in range(5)]
        await turns(TRIAL)
        assert [delivery.done() for delivery in deliveries] == [False, False, False, True, True]
        assert isinstance(deliveries[3].exception(), BufferExhaustedException)
        assert deliveries[3].outcome is Outcome.NOT_SENT
        gate.set()
        assert [(await delivery).offset for delivery in deliveries[:3]] == [0, 1, 2]
        assert (await producer.send("t", bytes(800))).offset == 3


async def test_a_large_waiter_is_not_overtaken() -> None:
    """First come, first served: small records that would fit wait behind a large one that does not."""
    gate = asyncio.Event()
    async with running(buffer_memory=40_000, batch_size=1000, max_request_size=30_000) as (cluster, producer):
        _ = await producer.partitions_for("t")
        cluster.broker.script(ApiKey.PRODUCE, after(gate))
        early = [producer.send("t", b"early %d" % n + bytes(800)) for n in range(20)]
        await cluster.broker.received(ApiKey.PRODUCE)
        large = asyncio.create_task(producer.enqueue("t", b"large" + bytes(28_000)))
        await asyncio.sleep(0)
        late = [asyncio.create_task(producer.enqueue("t", b"late %d" % n)) for n in range(50)]
        later = [producer.send("t", b"later %d" % n) for n in range(50)]
        gate.set()
        offset = (await (await large)).offset
        assert offset == len(early)
        assert all([(await (await task)).offset > offset for task in late])
        assert all([(await delivery).offset > offset for delivery in later])


async def test_no_linger_while_somebody_waits_for_memory() -> None:
    async with running(**TINY, linger_ms=3_600_000, delivery_timeout_ms=4_000_000) as (_, producer):
        _ = await producer.partitions_for("t")
        deliveries = [await producer.enqueue("t", bytes(300)) for _ in range(40)]
        assert deliveries[20].done()
        await producer.flush()


async def test_no_linger_while_records_that_had_no_metadata_wait_for_memory() -> None:
    config = {"buffer_memory": 7000, "batch_initial_size": 0, "linger_ms": 3_600_000, "delivery_timeout_ms": 4_000_000}
    async with running(**config, batch_size=1000, topics={"t": 1, "u": 4}) as (_, producer):
        _ = await producer.partitions_for("u")
        lingering = [producer.send("u", b"v", partition=n) for n in range(4)]
        assert (await (await producer.enqueue("t", b"v"))).offset == 0
        assert all([(await delivery).offset == 0 for delivery in lingering])


# flush and close


async def test_flush_overrides_linger_and_waits_for_what_is_parked() -> None:
    async with running(linger_ms=3_600_000, delivery_timeout_ms=4_000_000, topics={"t": 3}) as (cluster, producer):
        parked = [producer.send("t", b"v", partition=n % 3) for n in range(9)]
        await producer.flush()
        assert all(delivery.result() for delivery in parked)
        lingering = [producer.send("t", b"w", partition=n % 3) for n in range(9)]
        await asyncio.gather(producer.flush(), producer.flush(), producer.flush())
        assert all(delivery.done() for delivery in lingering)
        assert sum(len(cluster.values("t", n)) for n in range(3)) == 18


async def test_flush_overrides_the_linger_of_many_partitions() -> None:
    """More than one pass of the Sender looks at."""
    count = 3 * MOST_DUE
    async with running(linger_ms=3_600_000, delivery_timeout_ms=4_000_000, topics={"t": count}) as (_, producer):
        await producer.partitions_for("t")
        deliveries = [producer.send("t", b"v", partition=partition) for partition in range(count)]
        await producer.flush()
        assert all(delivery.result().offset == 0 for delivery in deliveries)


async def test_flush_during_failures_returns_when_all_has_failed() -> None:
    async with running() as (cluster, producer):
        _ = await producer.partitions_for("t")
        cluster.broker.script(ApiKey.PRODUCE, drop(), error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        failing = producer.send("t", b"v")
        await producer.flush()
        assert isinstance(failing.exception(), DeliveryError)
        await producer.flush()


async def test_flush_does_not_wait_for_what_comes_after_it() -> None:
    gate = asyncio.Event()
    async with running() as (cluster, producer):
        _ = await producer.partitions_for("t")
        first = producer.send("t", b"v")
        flush = asyncio.create_task(producer.flush())
        _ = await first
        cluster.broker.always(ApiKey.PRODUCE, after(gate))
        late = producer.send("t", b"w")
        await flush
        assert not late.done()
        gate.set()


async def test_a_flush_that_is_cancelled_harms_nobody() -> None:
    gate = asyncio.Event()
    async with running() as (cluster, producer):
        _ = await producer.partitions_for("t")
        cluster.broker.script(ApiKey.PRODUCE, after(gate))
        delivery = producer.send("t", b"v")
        flushes = [asyncio.create_task(producer.flush()) for _ in range(2)]
        await cluster.broker.received(ApiKey.PRODUCE)
        flushes[0].cancel()
        gate.set()
        await flushes[1]
        assert delivery.result().offset == 0
        assert flushes[0].cancelled()


async def test_close_delivers_what_lingers_and_what_is_parked() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        config = {"linger_ms": 3_600_000, "delivery_timeout_ms": 4_000_000}
        producer = make_producer(cluster.bootstrap_servers, **config)
        await producer.start()
        parked = producer.send("t", b"parked")
        await producer.close()
        assert parked.result().offset == 0
        producer = make_producer(cluster.bootstrap_servers, **config)
        await producer.start()
        _ = await producer.partitions_for("t")
        lingering = producer.send("t", b"lingering")
        await producer.close()
        assert lingering.result().offset == 1
        assert all_memory_free(producer)


@pytest.mark.parametrize("timeout", [0, 0.03])
async def test_a_close_that_is_out_of_time_tells_what_is_known(timeout: float) -> None:
    async with running(nodes=1, topics={"t": 1}, max_in_flight_requests_per_connection=1) as (cluster, producer):
        cluster.broker.always(ApiKey.PRODUCE, never(appended=True))
        _ = await producer.partitions_for("t")
        under_way = producer.send("t", b"under way")
        await cluster.broker.received(ApiKey.PRODUCE)
        queued = producer.send("t", b"queued")
        parked = producer.send("unknown", b"parked", partition=99)
        waiting = asyncio.create_task(producer.enqueue("t", b"waiting", partition=99))
        await asyncio.sleep(0)
        await producer.close(timeout=timeout)
        assert [d.outcome for d in (under_way, queued, parked)] == [
            Outcome.UNKNOWN,
            Outcome.NOT_SENT,
            Outcome.NOT_SENT,
        ]
        with pytest.raises(DeliveryError, match="closed") as raised:
            _ = await waiting
        assert raised.value.outcome is Outcome.NOT_SENT
        assert all_memory_free(producer)
    assert cluster.values("t") == [b"under way"]


@virtual
async def test_close_with_the_broker_dead_ends_by_the_delivery_timeout(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        config = {"request_timeout_ms": 50, "delivery_timeout_ms": 100, "max_block_ms": 100}
        producer = make_producer(cluster.bootstrap_servers, **config)
        await producer.start()
        _ = await producer.send("t", b"v")
        await cluster.stop_node(0)
        deliveries = [producer.send("t", b"w"), producer.send("unknown", b"x")]
        await producer.close()
        assert all(isinstance(delivery.exception(), TimeoutException) for delivery in deliveries)


async def test_close_twice_and_at_the_same_time() -> None:
    gate = asyncio.Event()
    async with running() as (cluster, producer):
        _ = await producer.partitions_for("t")
        cluster.broker.script(ApiKey.PRODUCE, after(gate))
        delivery = producer.send("t", b"v")
        closes = [asyncio.create_task(producer.close()) for _ in range(3)]
        await cluster.broker.received(ApiKey.PRODUCE)
        assert not any(close.done() for close in closes)
        gate.set()
        await asyncio.gather(*closes)
        assert delivery.result().offset == 0
        await producer.close()


async def test_a_negative_time_to_close_in_is_refused() -> None:
    async with EmbeddedCluster() as cluster:
        producer = make_producer(cluster.bootstrap_servers)
        await producer.start()
        with pytest.raises(IllegalArgumentException, match="time-out of close is -1"):
            await producer.close(-1)
        assert (await producer.send("t", b"it goes on")).offset == 0
        await producer.close()


async def test_a_cancelled_close_still_ends_everything_and_harms_no_other() -> None:
    async with running() as (cluster, producer):
        _ = await producer.partitions_for("t")
        cluster.broker.script(ApiKey.PRODUCE, never())
        delivery = producer.send("t", b"v")
        first, second = (asyncio.create_task(producer.close()) for _ in range(2))
        await cluster.broker.received(ApiKey.PRODUCE)
        first.cancel()
        await second  # returns: all is closed
        assert delivery.outcome is Outcome.UNKNOWN
        with pytest.raises(asyncio.CancelledError):
            await first


@virtual
@pytest.mark.usefixtures("shortest_turns")
@pytest.mark.parametrize("topic", ["t", "unknown"])
@pytest.mark.parametrize("turns_between", [1, 2, 5])
async def test_a_second_cancellation_of_close_is_raised_when_every_delivery_is_done(
    world: World, topic: str, turns_between: int
) -> None:
    async with ScriptedCluster(configs={"auto.create.topics.enable": False}) as cluster:
        cluster.create_topic("t", 20)
        producer = make_producer(cluster.bootstrap_servers, linger_ms=60_000, delivery_timeout_ms=100_000)
        await producer.start()
        _ = await producer.partitions_for("t")
        deliveries = [producer.send(topic, b"v", partition=partition) for partition in range(20)]
        closing = asyncio.create_task(producer.close())
        cluster.broker.always(ApiKey.PRODUCE, never())
        await asyncio.sleep(0.01)
        closing.cancel()
        for _ in range(turns_between):
            await asyncio.sleep(0)
        assert not all(delivery.done() for delivery in deliveries)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert all(delivery.done() for delivery in deliveries)
        await producer.close()
        assert all_memory_free(producer)


@virtual
@pytest.mark.usefixtures("shortest_turns")
@pytest.mark.parametrize("how", ["close at once", "cancelled twice"])
async def test_records_end_in_their_order_when_some_of_them_are_parked(world: World, how: str) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, never())
        producer = make_producer(cluster.bootstrap_servers, buffer_memory=20_000, batch_size=2000)
        await producer.start()
        _ = await producer.partitions_for("t")
        ended: list[int] = []
        for number in range(60):
            delivery = producer.send("t", bytes(900))
            delivery.add_done_callback(partial(_note, ended, number))
        await cluster.broker.received(ApiKey.PRODUCE)
        assert len(core_of(producer).lot) > 10
        if how == "close at once":
            await producer.close(0)
        else:
            closing = asyncio.create_task(producer.close())
            for _ in range(2):
                await turns(3)
                closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
        assert ended == list(range(60))
        await producer.close()


@virtual
async def test_callbacks_that_send_again_without_room_do_not_nest(world: World) -> None:
    producer = make_producer("127.0.0.1:1", parked_memory=0)
    await producer.start()
    left, depth, deepest, ended = 500, 0, 0, 0

    def again(_: Delivery) -> None:
        nonlocal left, depth, deepest, ended
        ended += 1
        depth += 1
        deepest = max(deepest, depth)
        if left:
            left -= 1
            producer.send("t", b"v").add_done_callback(again)
        depth -= 1

    for _ in range(100):
        producer.send("t", b"v").add_done_callback(again)
    await asyncio.sleep(1)
    assert (ended, deepest) == (600, 1)
    await producer.close(0)


@virtual
async def test_what_callbacks_of_delivered_records_send_ends_no_trial_within_them(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        config = {"parked_memory": 0, "buffer_memory": 20_000, "batch_size": 2000}
        producer = make_producer(cluster.bootstrap_servers, **config)
        await producer.start()
        _ = await producer.partitions_for("t")
        left, depth, deepest, ended = 500, 0, 0, 0

        def again(delivery: Delivery) -> None:
            nonlocal left, depth, deepest, ended
            ended += 1
            depth += 1
            deepest = max(deepest, depth)
            for _ in range(2):
                if left:
                    left -= 1
                    producer.send("t", bytes(900)).add_done_callback(again)
            depth -= 1

        for _ in range(100):
            producer.send("t", bytes(900)).add_done_callback(again)
        await asyncio.sleep(10)
        assert (ended, deepest) == (600, 1)
        await producer.close()


@virtual
async def test_a_close_that_is_left_logs_the_rest_in_turns_all_the_same(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with ScriptedCluster(configs={"auto.create.topics.enable": False}) as cluster:
        producer = make_producer(cluster.bootstrap_servers, max_block_ms=100)
        await producer.start()
        topics = [f"t{number}" for number in range(10 * MOST_LINES)]
        for _ in range(2):
            for topic in topics:
                _ = producer.send(topic, b"v")
            await asyncio.sleep(1)
        assert len(caplog.records) == len(topics)
        closing = asyncio.create_task(producer.close())
        most, cancelled = 0, False
        while not closing.done():
            before = len(caplog.records)
            await asyncio.sleep(0)
            most = max(most, len(caplog.records) - before)
            if before > len(topics) and not cancelled:
                cancelled = closing.cancel()
        assert cancelled
        assert 0 < most <= 2 * MOST_LINES
        assert len(caplog.records) == 2 * len(topics)


def _note(ended: list[int], number: int, _: Delivery) -> None:
    ended.append(number)


async def test_an_impatient_second_close_ends_the_first() -> None:
    async with running() as (cluster, producer):
        _ = await producer.partitions_for("t")
        cluster.broker.script(ApiKey.PRODUCE, never())
        delivery = producer.send("t", b"v")
        patient = asyncio.create_task(producer.close())
        await cluster.broker.received(ApiKey.PRODUCE)
        await producer.close(timeout=0)
        assert delivery.outcome is Outcome.UNKNOWN
        await patient


async def test_a_close_that_is_cancelled_while_it_closes_connections_leaves_none() -> None:
    async with running(acks="0", send_buffer_bytes=4096) as (cluster, producer):
        cluster.broker.always(ApiKey.PRODUCE, never())
        _ = await producer.partitions_for("t")
        deliveries = [producer.send("t", bytes(900_000)) for _ in range(4)]
        closing = asyncio.create_task(producer.close())
        await cluster.broker.received(ApiKey.PRODUCE)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert all(delivery.done() for delivery in deliveries)


async def test_close_from_a_callback() -> None:
    async with running() as (_, producer):
        tasks: list[asyncio.Task[None]] = []
        delivery = producer.send("t", b"v")
        delivery.add_done_callback(lambda done: tasks.append(asyncio.ensure_future(producer.close())))
        _ = await delivery
        await tasks[0]
        with pytest.raises(IllegalStateException, match="closed"):
            _ = producer.send("t", b"w")


async def test_partitions_for_ends_with_the_producer() -> None:
    async with running() as (cluster, producer):
        cluster.broker.always(ApiKey.METADATA, never())
        waiting = asyncio.create_task(producer.partitions_for("unknown"))
        await cluster.broker.received(ApiKey.METADATA)
        await producer.close(timeout=0)
        with pytest.raises(IllegalStateException, match="closed"):
            await waiting


# asyncio.run's teardown, forks

PRELUDE = """
import asyncio, gc, os, sys, warnings, logging
warnings.simplefilter("error")
from aioproducer import KafkaProducer, Outcome
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import *
"""


def run_python(script: str, *, fails: bool = False) -> str:
    """Runs a script with development mode on; what it wrote. A warning from a finalizer is an error, too."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", PRELUDE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=20,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    said = done.stdout + done.stderr
    assert (done.returncode != 0) == fails, said
    assert "Warning" not in said, said
    assert "never retrieved" not in said, said
    assert "destroyed" not in said, said
    return said


@pytest.fixture
def broker_in_a_thread() -> Any:
    """A broker that outlives the loop under test."""
    loop = asyncio.new_event_loop()
    cluster = EmbeddedCluster()
    loop.run_until_complete(cluster.start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield cluster
    asyncio.run_coroutine_threadsafe(cluster.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def test_main_ends_with_the_producer_open(broker_in_a_thread: EmbeddedCluster) -> None:
    """No hang, no lost error, no warning; what is not delivered is told."""
    said = run_python(
        f"""
        logging.basicConfig()
        async def main():
            producer = KafkaProducer(bootstrap_servers="{broker_in_a_thread.bootstrap_servers}", linger_ms=100000)
            await producer.start()
            await producer.partitions_for("t")
            producer.send("t", b"lost")
            global kept
            kept = producer
            raise KeyError("the error of main")
        asyncio.run(main())
        """,
        fails=True,
    )
    assert "the error of main" in said
    assert "not delivered (not_sent)" in said


def test_main_ends_while_a_task_closes_the_producer(broker_in_a_thread: EmbeddedCluster) -> None:
    said = run_python(
        f"""
        async def main():
            producer = KafkaProducer(bootstrap_servers="{broker_in_a_thread.bootstrap_servers}", linger_ms=100000)
            await producer.start()
            waiting = producer.send("nowhere", b"v", partition=99)
            deliveries.append(waiting)
            async def close():
                try:
                    await producer.close()
                finally:
                    print("closed", waiting.outcome)
            global task
            task = asyncio.create_task(close())
            await asyncio.sleep(0.05)
        deliveries = []
        asyncio.run(main())
        assert deliveries[0].done()
        """
    )
    assert "closed Outcome.NOT_SENT" in said


def test_main_raises_within_the_block(broker_in_a_thread: EmbeddedCluster) -> None:
    said = run_python(
        f"""
        async def main():
            async with KafkaProducer(bootstrap_servers="{broker_in_a_thread.bootstrap_servers}") as producer:
                delivery.append(producer.send("t", b"v"))
                raise KeyError("the error of main")
        delivery = []
        try:
            asyncio.run(main())
        except KeyError:
            print("offset", delivery[0].result().offset)
        """
    )
    assert "offset 0" in said


def test_a_forked_child_gets_an_error_and_the_parent_continues(broker_in_a_thread: EmbeddedCluster) -> None:
    said = run_python(
        f"""
        async def use(producer):
            for misuse in (producer.flush, producer.close, producer.start, lambda: producer.enqueue("t", b"v")):
                try:
                    await misuse()
                except IllegalStateException as error:
                    assert "forked" in str(error), error
                else:
                    raise AssertionError("the child may use it")
        async def main():
            async with KafkaProducer(bootstrap_servers="{broker_in_a_thread.bootstrap_servers}") as producer:
                assert (await producer.send("t", b"0")).offset == 0
                child = os.fork()
                if child == 0:
                    try:
                        assert repr(producer).endswith(": started in another process>"), repr(producer)
                        try:
                            producer.send("t", b"child")
                        except IllegalStateException as error:
                            assert "forked" in str(error), error
                        asyncio.run(use(producer))
                        del producer
                        gc.collect()
                    except BaseException as error:
                        print("child:", repr(error), flush=True)
                        os._exit(1)
                    os._exit(0)
                _, status = os.waitpid(child, 0)
                assert status == 0, status
                assert (await producer.send("t", b"1")).offset == 1
        asyncio.run(main())
        print("fine")
        """
    )
    assert "fine" in said


# uvloop as well

Main = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Main], None]:
    def run_main(main: Main) -> None:
        factory = None
        if request.param == "uvloop":
            factory = pytest.importorskip("uvloop").new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(main())

    return run_main


def test_on_both_loops_everyday_use(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        async with running(nodes=2, topics={"t": 4}, batch_size=2000, linger_ms=5) as (cluster, producer):
            deliveries = [await producer.enqueue("t", b"%d" % n, key=b"%d" % n) for n in range(2000)]
            assert (await deliveries[7]).topic == "t"
            await producer.flush()
            assert sum(len(cluster.values("t", n)) for n in range(4)) == 2000
            assert all(delivery.exception() is None for delivery in deliveries)
            assert all_memory_free(producer)

    run(main)


def test_on_both_loops_troubles(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        async with running() as (cluster, producer):
            cluster.broker.script(ApiKey.PRODUCE, drop(), drop(appended=True), raw(b"HTTP/1.1"), never(appended=True))
            deliveries = [producer.send("t", value) for value in numbered(3)]
            await cluster.broker.received(ApiKey.PRODUCE, 4)
            cluster.broker.drop_connections()
            assert [(await delivery).offset for delivery in deliveries] == [0, 1, 2]
            assert cluster.values("t") == numbered(3)

    run(main)


def test_on_both_loops_back_pressure_and_cancellation(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        gate = asyncio.Event()
        async with running(**TINY) as (cluster, producer):
            _ = await producer.partitions_for("t")
            cluster.broker.always(ApiKey.PRODUCE, after(gate))
            tasks = [asyncio.create_task(producer.enqueue("t", b"%d" % n + bytes(800))) for n in range(12)]
            await cluster.broker.received(ApiKey.PRODUCE)
            for task in tasks[4:12:2]:
                task.cancel()
            gate.set()
            await asyncio.wait(tasks)
            await producer.flush()
            assert len(cluster.values("t")) == 8
            assert all_memory_free(producer)

    run(main)


def test_on_both_loops_a_close_out_of_time(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        async with running() as (cluster, producer):
            cluster.broker.always(ApiKey.PRODUCE, never())
            delivery = producer.send("t", b"v")
            await cluster.broker.received(ApiKey.PRODUCE)
            await producer.close(timeout=0.01)
            assert delivery.outcome is Outcome.UNKNOWN

    run(main)


def test_on_both_loops_a_busy_enqueue_lets_others_run(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        async with running(buffer_memory=64 << 20) as (_, producer):
            _ = await producer.partitions_for("t")
            beats = 0
            busy = True

            async def beat() -> None:
                nonlocal beats
                while busy:
                    beats += 1
                    await asyncio.sleep(0)

            heart = asyncio.create_task(beat())
            started = time.perf_counter()
            for _ in range(20_000):
                _ = await producer.enqueue("t", bytes(100))
            busy = False
            await heart
            # Once a millisecond was asked for; a generous fraction of that shows that it is not once per buffer.
            assert beats > (time.perf_counter() - started) * 1000 / 50

    run(main)


# Metadata that is not as it should be


def _gap(response: Any) -> None:
    for topic in response.topics:
        topic.partitions = [partition for partition in topic.partitions if partition.partition_index != 1]


def _doubles(response: Any) -> None:
    for topic in response.topics:
        topic.partitions = [*topic.partitions, *topic.partitions]


@pytest.mark.parametrize(("edit", "partitions"), [(_gap, 1), (_doubles, 3)])
async def test_partitions_missing_or_doubled_in_metadata(edit: Callable[[Any], None], partitions: int) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 3)
        cluster.broker.always(ApiKey.METADATA, edited(edit))
        async with make_producer(cluster.bootstrap_servers) as producer:
            assert [info.partition for info in await producer.partitions_for("t")] == list(range(partitions))
            for n in range(30):
                metadata = await producer.send("t", b"v", key=b"%d" % n)
                assert cluster.values("t", metadata.partition)


async def test_an_answer_with_an_unrequested_or_unnamed_topic() -> None:
    def extra(response: Any) -> None:
        response.topics += [MetadataResponseTopic(0, None), MetadataResponseTopic(0, "other")]

    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.METADATA, edited(extra))
        async with make_producer(cluster.bootstrap_servers) as producer:
            assert (await producer.send("t", b"v")).offset == 0


async def test_a_broker_with_an_impossible_address() -> None:
    def impossible(response: Any) -> None:
        for number, broker in enumerate(response.brokers):
            broker.port = 70_000 + number

    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.METADATA, edited(impossible))
        config = {"request_timeout_ms": 300, "delivery_timeout_ms": 500}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            ended = await end_of(producer.send("t", b"v"))
            assert isinstance(ended, KafkaError)
            assert ":70000" in str(ended)
