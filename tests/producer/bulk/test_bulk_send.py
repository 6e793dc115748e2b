"""``send_many`` against the embedded broker, and against brokers that misbehave."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer import (
    BulkResult,
    DeliveryError,
    KafkaProducer,
    Outcome,
    ProducerInterceptor,
    ProducerRecord,
    TopicPartition,
)
from aioproducer.errors import (
    BufferExhaustedException,
    IllegalArgumentException,
    IllegalStateException,
    InvalidRecordException,
    KafkaError,
    PartitionerException,
    ProducerFencedException,
    RecordTooLargeException,
    SerializationException,
    TimeoutException,
    TransactionAbortableException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free, make_producer
from tests.support.scripted_broker import ScriptedCluster, error, never
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@asynccontextmanager
async def running(
    *, partitions: int = 3, **config: Any
) -> AsyncIterator[tuple[ScriptedCluster, KafkaProducer[Any, Any]]]:
    async with ScriptedCluster(1) as cluster:
        cluster.create_topic("t", partitions)
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            yield cluster, producer


def logged(cluster: ScriptedCluster, topic: str = "t") -> list[list[Any]]:
    """The records of each partition."""
    logs = [partition.log for partition in cluster.topic(topic).partitions]
    return [[record for batch in log.batches() for record in batch.records()] for log in logs]


def values(cluster: ScriptedCluster, topic: str = "t") -> list[bytes]:
    logs = [partition.log for partition in cluster.topic(topic).partitions]
    batches = [batch for log in logs for batch in log.batches() if not batch.is_control]
    return sorted((record.value or b"" for batch in batches for record in batch.records()), key=int)


async def metric_above_zero(producer: KafkaProducer, name: str) -> None:
    while not producer.metrics()[name]:  # noqa: ASYNC110 - metrics have no event
        await asyncio.sleep(0)


# What arrives


async def test_every_record_arrives_once_in_order_as_it_was_given() -> None:
    headers = [None, [("a", b"1"), ("a", None)], []]
    async with running(batch_size=500) as (cluster, producer):
        result = await producer.send_many(
            "t",
            numbered(2000),
            keys=[None if number % 5 == 0 else b"%d" % (number % 7) for number in range(2000)],
            partitions=[2 if number % 3 == 0 else None for number in range(2000)],
            timestamps_ms=range(2000),
            headers=[headers[number % 3] for number in range(2000)],
        )
        assert (result.count, result.delivered, result.failed, result.errors) == (2000, 2000, 0, [])
        partitions = logged(cluster)
        for partition, records in enumerate(partitions):
            numbers = [int(record.value) for record in records]
            assert numbers == sorted(numbers)
            assert result.offsets[TopicPartition("t", partition)] == (0, len(records) - 1, len(records))
            for number, record in zip(numbers, records, strict=True):
                assert record.key == (None if number % 5 == 0 else b"%d" % (number % 7))
                assert record.timestamp_ms == number
                assert list(record.headers) == list(headers[number % 3] or [])
                assert number % 3 or partition == 2
        assert values(cluster) == numbered(2000)


async def test_generators_are_read_as_there_is_room() -> None:
    read = 0

    def made() -> Iterator[bytes]:
        nonlocal read
        for number in range(5000):
            read += 1
            yield b"%d" % number

    async with running(buffer_memory=20_000, batch_size=1000) as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, never())
        sending = asyncio.create_task(producer.send_many("t", made()))
        await cluster.broker.received(ApiKey.PRODUCE)
        assert read < 5000
        cluster.broker.drop_connections()
        assert (await sending).delivered == 5000
        assert values(cluster) == numbered(5000)
        assert all_memory_free(producer)


async def test_an_empty_call_has_an_empty_result() -> None:
    async with running() as (_, producer):
        result = await producer.send_many("t", [])
        assert (result.count, result.delivered, result.errors, result.offsets) == (0, 0, [], {})


async def test_bulk_sends_and_single_ones_share_batches_and_each_has_its_own_account() -> None:
    async with running(partitions=1, linger_ms=5) as (cluster, producer):
        first, single, second = await asyncio.gather(
            producer.send_many("t", (value for value in numbered(50))),
            producer.send("t", b"50"),
            producer.send_many("t", [b"%d" % number for number in range(51, 100)]),
        )
        assert values(cluster) == numbered(100)
        assert len(list(cluster.topic("t").partitions[0].log.batches())) == 1
        assert first.offsets["t", 0].records == 50
        assert second.offsets["t", 0].records == 49
        assert single.partition == 0


async def test_a_batch_that_is_split_is_accounted_for_in_its_parts() -> None:
    async with running(partitions=1, linger_ms=1000, batch_size=10_000) as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.MESSAGE_TOO_LARGE), error(ErrorCode.MESSAGE_TOO_LARGE))
        sending = asyncio.create_task(producer.send_many("t", numbered(400)))
        await asyncio.sleep(0)
        await producer.flush()
        result = await sending
        assert (result.delivered, result.errors) == (400, [])
        assert [record.value for record in logged(cluster)[0]] == numbered(400)
        assert result.offsets["t", 0] == (0, 399, 400)


@pytest.mark.parametrize("acks", [0, 1])
async def test_without_acknowledgements_of_all(acks: int) -> None:
    async with running(acks=acks, enable_idempotence=False) as (_, producer):
        result = await producer.send_many("t", numbered(100))
        assert result.delivered == 100
        assert all((offsets.first >= 0) == (acks == 1) for offsets in result.offsets.values())


# What fails


async def test_a_failed_record_harms_no_other() -> None:
    async with running(max_request_size=1000) as (cluster, producer):
        result = await producer.send_many(
            "t",
            [b"0", "text", b"1", b"x" * 2000, b"2", b"3", b"4"],
            partitions=[None, None, None, None, -1, "one", 1],  # type: ignore[list-item]
        )
        assert result.delivered == 3
        assert values(cluster) == [b"0", b"1", b"4"]
        assert [(index, type(error).__mro__[2]) for index, error in result.errors] == [
            (1, SerializationException),
            (3, RecordTooLargeException),
            (4, IllegalArgumentException),
            (5, IllegalArgumentException),
        ]
        assert all(error.outcome is Outcome.NOT_SENT for _, error in result.errors)
        assert producer.metrics()["record-error-total"] == 2  # misuse does not count


async def test_records_of_a_batch_that_a_broker_refuses_fail_and_the_others_are_delivered() -> None:
    async with running(partitions=1) as (cluster, producer):
        cluster.alter_topic_configs("t", {"cleanup.policy": "compact"})
        result = await producer.send_many("t", numbered(6), keys=[b"k", None, b"k", b"k", None, None])
        assert result.delivered == 3
        assert [index for index, _ in result.errors] == [1, 4, 5]
        for _, failed in result.errors:
            assert isinstance(failed, InvalidRecordException)
            assert failed.outcome is Outcome.NOT_SENT
            assert "has no key" in str(failed)
        assert values(cluster) == [b"0", b"2", b"3"]


async def test_observed_records_of_a_failed_batch_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with running(partitions=2) as (cluster, producer):
        await producer.send("t", b"7", partition=1)
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        with caplog.at_level(logging.WARNING):
            result = await producer.send_many("t", numbered(9), partitions=[0] * 9)
        assert [index for index, _ in result.errors] == list(range(9))
        assert len({id(error) for _, error in result.errors}) == 1
        with pytest.raises(DeliveryError):
            result.raise_if_failed()
        assert "9 record" not in caplog.text


@virtual
async def test_memory_that_does_not_come_back_ends_the_call_and_accounts_for_all(world: World) -> None:
    config = {"buffer_memory": 6000, "batch_size": 1000, "delivery_timeout_ms": 60_000}
    async with running(partitions=1, **config) as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, never())
        sending = asyncio.create_task(producer.send_many("t", numbered(1000)))
        await asyncio.sleep(6)  # max.block.ms is over
        assert producer.metrics()["buffer-exhausted-total"] == 1
        cluster.broker.drop_connections()
        result = await sending
        assert 0 < result.delivered < 1000
        assert [index for index, _ in result.errors] == list(range(result.delivered, 1000))
        assert all(isinstance(error, BufferExhaustedException) for _, error in result.errors)
        assert values(cluster) == numbered(result.delivered)
        assert producer.metrics()["record-error-total"] == result.failed


@virtual
async def test_an_unknown_topic_is_waited_for_once(world: World) -> None:
    async with (
        ScriptedCluster(1, configs={"auto.create.topics.enable": False}) as cluster,
        make_producer(cluster.bootstrap_servers) as producer,
    ):
        result = await producer.send_many("nowhere", numbered(1000))
        assert result.failed == 1000
        assert all(isinstance(error, TimeoutException) for _, error in result.errors)
        assert "nowhere" in str(result.errors[999][1])


@virtual
async def test_a_partition_that_does_not_exist_is_waited_for_once_and_holds_up_no_other(world: World) -> None:
    async with running(partitions=2) as (cluster, producer):
        result = await producer.send_many("t", numbered(100), partitions=[number % 4 for number in range(100)])
        assert [index for index, _ in result.errors] == [number for number in range(100) if number % 4 >= 2]
        assert all("partition 2 of topic 't' did not exist" in str(error) for _, error in result.errors)
        assert result.delivered == len(values(cluster)) == 50


@virtual
async def test_without_a_broker_it_ends_by_max_block(world: World) -> None:
    async with make_producer("127.0.0.1:1") as producer:
        result = await producer.send_many("t", (value for value in numbered(10_000)))
        assert (result.failed, {type(error).__mro__[2] for _, error in result.errors}) == (10_000, {TimeoutException})


# Iterables that fail


async def test_an_error_of_an_iterable_is_raised_after_the_records_before_it() -> None:
    def made() -> Iterator[bytes]:
        yield from numbered(100)
        raise LookupError("no more")

    async with running() as (cluster, producer):
        with pytest.raises(LookupError, match="no more") as caught:
            await producer.send_many("t", made())
        assert caught.value.__notes__ == [
            "before it 100 records had been sent: <BulkResult count=100 delivered=100 failed=0>"
        ]
        assert values(cluster) == numbered(100)


# Cancelled, closed


@virtual
async def test_cancelled_what_is_in_the_accumulator_goes_on_and_the_rest_does_not_begin(world: World) -> None:
    async with running(buffer_memory=5000, batch_size=1000, linger_ms=0) as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, never())
        sending = asyncio.create_task(producer.send_many("t", numbered(1000)))
        await metric_above_zero(producer, "waiting-threads")
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await cluster.broker.received(ApiKey.PRODUCE)
        cluster.broker.drop_connections()
        await producer.flush()
        arrived = values(cluster)
        assert 0 < len(arrived) < 1000
        assert arrived == numbered(len(arrived))
        assert all_memory_free(producer)


async def test_failures_that_come_after_a_cancel_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with running(partitions=1, linger_ms=10_000, delivery_timeout_ms=20_000) as (cluster, producer):
        await producer.partitions_for("t")
        sending = asyncio.create_task(producer.send_many("t", numbered(10)))
        await asyncio.sleep(0)
        sending.cancel()
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        with caplog.at_level(logging.WARNING):
            await producer.flush()
            await producer.close()
        assert "10 record" in caplog.text


async def test_close_in_the_midst_delivers_what_was_accepted_and_accounts_for_the_rest() -> None:
    async with running(buffer_memory=5000, batch_size=1000) as (cluster, producer):
        sending = asyncio.create_task(producer.send_many("t", numbered(5000)))
        await metric_above_zero(producer, "waiting-threads")
        await producer.close()
        result = await sending
        assert 0 < result.delivered < 5000
        assert [index for index, _ in result.errors] == list(range(result.delivered, 5000))
        assert isinstance(result.errors[-1][1], IllegalStateException)
        assert values(cluster) == numbered(result.delivered)
        assert producer.metrics()["record-error-total"] == result.failed


async def test_a_forced_close_in_the_midst_ends_the_call() -> None:
    async with running(buffer_memory=5000, batch_size=1000) as (cluster, producer):
        cluster.broker.always(ApiKey.PRODUCE, never())
        sending = asyncio.create_task(producer.send_many("t", numbered(5000)))
        await cluster.broker.received(ApiKey.PRODUCE)
        await producer.close(0)
        result = await sending
        assert result.failed == 5000
        assert {error.outcome for _, error in result.errors} == {Outcome.UNKNOWN, Outcome.NOT_SENT}
        assert producer.metrics()["record-error-total"] == 5000


# The user's code


async def test_serializers_partitioners_and_interceptors_see_every_record() -> None:
    class Watching(ProducerInterceptor):
        def __init__(self) -> None:
            self.ends: list[Any] = []

        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(headers=[("seen", b"yes")])

        def on_acknowledgement(self, metadata: Any, error: Any, headers: Any) -> None:
            self.ends.append(error)

    def odd(topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, partitions: Any) -> int:
        return value % 2 if value != 13 else 99

    watching = Watching()
    async with running(
        value_serializer=lambda number: b"%d" % number, partitioner_class=odd, interceptor_classes=[watching]
    ) as (cluster, producer):
        result = await producer.send_many("t", [*range(100), "text"])
        assert [(index, type(error).__mro__[2]) for index, error in result.errors] == [
            (13, PartitionerException),
            (100, SerializationException),
        ]
        assert values(cluster) == [b"%d" % number for number in range(100) if number != 13]
        assert len(watching.ends) == 101
        for number, records in enumerate(logged(cluster)):
            assert all(int(record.value) % 2 == number for record in records)
            assert all(list(record.headers) == [("seen", b"yes")] for record in records)


# Transactions


async def test_a_transaction_has_all_of_it_or_nothing() -> None:
    async with running(transactional_id="x") as (cluster, producer):
        await producer.init_transactions()
        async with producer.transaction():
            result = await producer.send_many("t", numbered(1000))
        assert result.delivered == 1000
        assert values(cluster) == numbered(1000)
        await producer.begin_transaction()
        result = await producer.send_many("t", [b"v", "text"])
        assert (result.delivered, result.failed) == (1, 1)
        with pytest.raises(TransactionAbortableException):
            await producer.commit_transaction()
        await producer.abort_transaction()


async def test_without_a_transaction_nothing_is_sent() -> None:
    async with running(transactional_id="x") as (cluster, producer):
        await producer.init_transactions()
        with pytest.raises(IllegalStateException, match="belong to a transaction"):
            await producer.send_many("t", numbered(10))
        assert cluster.broker.count(ApiKey.PRODUCE) == 0


async def test_a_newer_producer_in_the_midst_ends_the_call() -> None:
    async with running(transactional_id="x", buffer_memory=5000, batch_size=1000) as (cluster, producer):
        await producer.init_transactions()
        await producer.begin_transaction()
        cluster.broker.always(ApiKey.PRODUCE, error(ErrorCode.PRODUCER_FENCED))
        result = await producer.send_many("t", numbered(5000))
        assert result.failed == 5000
        assert isinstance(result.errors[-1][1], ProducerFencedException)
        assert producer.metrics()["record-error-total"] == 5000


async def test_an_abort_in_the_midst_ends_the_call() -> None:
    async with running(transactional_id="x", buffer_memory=5000, batch_size=1000) as (_, producer):
        await producer.init_transactions()
        await producer.begin_transaction()
        sending = asyncio.create_task(producer.send_many("t", numbered(5000)))
        await metric_above_zero(producer, "waiting-threads")
        await producer.abort_transaction()
        result = await sending
        assert result.failed > 0
        assert all(isinstance(error, KafkaError) for _, error in result.errors)


# Failures that nobody looks at


def failures(caplog: pytest.LogCaptureFixture) -> list[tuple[Any, ...]]:
    """Topic, records, error and outcome of each log line about them."""
    logged = [vars(line)["kafka"] for line in caplog.records if line.name.endswith("failure_log")]
    return [(fields["topic"], fields["records"], fields["error"], fields["outcome"]) for fields in logged]


@pytest.mark.parametrize("hooked", [False, True])
async def test_a_result_that_nobody_reads_is_logged(*, hooked: bool, caplog: pytest.LogCaptureFixture) -> None:
    config: dict[str, Any] = {"interceptor_classes": [ProducerInterceptor()]} if hooked else {}
    async with running(max_request_size=1000, **config) as (_, producer):
        await producer.send_many("t", [b"1", "text", bytes(2000), 7, b"2"])
        await asyncio.sleep(0)
    assert sorted(failures(caplog)) == [
        ("t", 1, "RecordTooLargeException", "not_sent"),
        ("t", 2, "SerializationException", "not_sent"),
    ]


async def test_a_result_that_nobody_reads_of_records_that_the_broker_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with running(partitions=1) as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        await producer.send_many("t", numbered(5))
        await asyncio.sleep(0)
    assert failures(caplog) == [("t", 5, "TopicAuthorizationException", "not_sent")]


async def test_a_result_that_somebody_reads_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as (_, producer):
        assert (await producer.send_many("t", ["text"])).failed == 1
        await asyncio.sleep(0)
    assert caplog.messages == []


def test_a_result_that_nobody_reads_until_the_loop_has_ended(caplog: pytest.LogCaptureFixture) -> None:
    async def send() -> BulkResult:
        async with running() as (_, producer):
            return await producer.send_many("t", ["text"])

    result = asyncio.run(send())
    assert caplog.messages == []
    del result
    gc.collect()  # the task that returned it may be in a cycle
    assert failures(caplog) == [("t", 1, "SerializationException", "not_sent")]


@virtual
async def test_a_call_that_ends_without_a_result_logs_what_had_failed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def breaking() -> Iterator[Any]:
        yield "text"
        yield b"v"
        raise ValueError("no more")

    async with running() as (_, producer):
        with pytest.raises(ValueError, match="no more"):
            _ = await producer.send_many("t", breaking())
        await asyncio.sleep(1)
        assert failures(caplog) == [("t", 1, "SerializationException", "not_sent")]
        waits = asyncio.create_task(producer.send_many("other", [7, b"v"]))
        await asyncio.sleep(0)
        waits.cancel()
        _ = await asyncio.wait([waits])
    assert failures(caplog)[1:] == [("other", 1, "SerializationException", "not_sent")]
