"""What a class derived from the drop-in class overrides is called as aiokafka calls it."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock

import pytest

from aioproducer.compat.aiokafka import AIOKafkaProducer, errors
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from tests.compat.clusters import a_cluster
from tests.support.leaks import no_leaks as no_leaks
from tests.support.scripted_broker import ScriptedCluster, drop, error

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


class Seen(AIOKafkaProducer):
    """Notes each call, and makes it."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.calls: list[Any] = []

    async def start(self) -> None:
        self.calls.append("start")
        await super().start()

    async def stop(self) -> None:
        self.calls.append("stop")
        await super().stop()

    async def send(self, *record: Any, **more: Any) -> Any:
        self.calls.append((record, more))
        return await super().send(*record, **more)

    async def begin_transaction(self) -> None:
        self.calls.append("begin")
        await super().begin_transaction()

    async def commit_transaction(self) -> None:
        self.calls.append("commit")
        await super().commit_transaction()

    async def abort_transaction(self) -> None:
        self.calls.append("abort")
        await super().abort_transaction()


def made(cluster: ScriptedCluster, kind: type[Any] = Seen, **arguments: Any) -> Any:
    return kind(bootstrap_servers=cluster.bootstrap_servers, retry_backoff_ms=5, **arguments)


async def test_an_overridden_send_sees_every_record_of_send_and_wait() -> None:
    headers = [("name", b"data")]
    async with a_cluster() as cluster:
        async with made(cluster) as producer:
            metadata = await producer.send_and_wait("t", b"value", key=b"k", partition=1, headers=headers)
            assert (metadata.partition, metadata.offset) == (1, 0)
        record = ("t", b"value", b"k", 1, None, headers)
        assert producer.calls == ["start", (record, {}), "stop"]


async def test_errors_of_an_overridden_send_and_of_its_future_are_those_of_send_and_wait() -> None:
    async with a_cluster() as cluster, made(cluster) as producer:
        with pytest.raises(TypeError, match="the value is of type str"):
            await producer.send_and_wait("t", "text")
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        with pytest.raises(errors.TopicAuthorizationFailedError) as raised:
            await producer.send_and_wait("t", b"value")
        assert raised.value.__cause__ is not None


async def test_a_send_that_is_replaced_on_the_object_is_called() -> None:
    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    done.set_result("metadata")
    async with a_cluster() as cluster, made(cluster, AIOKafkaProducer) as producer:
        producer.send = AsyncMock(return_value=done)
        assert await producer.send_and_wait("t", b"value") == "metadata"
        producer.send.assert_awaited_once_with("t", b"value", None, None, None, None)
        assert cluster.broker.count(ApiKey.PRODUCE) == 0


async def test_a_block_goes_through_overridden_begin_commit_and_abort() -> None:
    async with a_cluster() as cluster, made(cluster, transactional_id="x") as producer:
        producer.calls.clear()
        async with producer.transaction() as given:
            assert given is producer
        assert producer.calls == ["begin", "commit"]
        producer.calls.clear()
        with pytest.raises(LookupError):
            async with producer.transaction():
                raise LookupError
        assert producer.calls == ["begin", "abort"]


async def test_a_commit_that_fails_because_of_a_record_is_followed_by_an_abort() -> None:
    async with a_cluster() as cluster, made(cluster, transactional_id="x") as producer:
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        with pytest.raises(errors.TopicAuthorizationFailedError):
            async with producer.transaction():
                future = await AIOKafkaProducer.send(producer, "t", b"value")
        with pytest.raises(errors.TopicAuthorizationFailedError):
            await future
        assert producer.calls[1:] == ["begin", "commit", "abort"]
        async with producer.transaction():
            await producer.send_and_wait("t", b"after")


async def test_a_block_that_the_user_has_ended_is_not_aborted() -> None:
    async with a_cluster() as cluster, made(cluster, transactional_id="x") as producer:

        async def fail_after(end: str) -> None:
            async with producer.transaction():
                await getattr(producer, f"{end}_transaction")()
                raise LookupError

        for end in ("commit", "abort"):
            producer.calls.clear()
            with pytest.raises(LookupError):
                await fail_after(end)
            assert producer.calls == ["begin", end]


async def test_the_error_of_a_block_stays_if_the_transaction_cannot_be_aborted() -> None:
    async with a_cluster() as cluster, made(cluster, transactional_id="x") as older:

        async def fail() -> None:
            async with older.transaction():
                await older.send_and_wait("t", b"value")
                async with made(cluster, transactional_id="x"):
                    raise LookupError

        with pytest.raises(LookupError) as raised:
            await fail()
        (note,) = raised.value.__notes__
        assert note.startswith("the transaction was not aborted: ProducerFenced: ")


async def test_a_cancelled_commit_is_not_followed_by_an_abort() -> None:
    async with a_cluster() as cluster, made(cluster, transactional_id="x") as producer:

        async def block() -> None:
            async with producer.transaction():
                await producer.send_and_wait("t", b"value")

        cluster.broker.script(ApiKey.END_TXN, drop(appended=True))
        task = asyncio.create_task(block())
        await cluster.broker.received(ApiKey.END_TXN)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert producer.calls[-1] == "commit"
        await producer.commit_transaction()


async def test_an_overridden_serialize_makes_the_bytes() -> None:
    class Enveloped(AIOKafkaProducer):
        def _serialize(self, key: Any, value: Any, headers: Any) -> tuple[Any, Any]:
            key, value = super()._serialize(key, value, headers)
            return key, b"<%b %d>" % (value, len(headers))

    async with a_cluster() as cluster, made(cluster, Enveloped, value_serializer=str.encode) as producer:
        await producer.send_and_wait("t", "one", partition=0)
        await (await producer.send("t", "two", partition=0, headers=iter([("name", b"data")])))
        assert cluster.values("t") == [b"<one 0>", b"<two 1>"]


async def test_an_overridden_partition_chooses_even_for_records_and_batches_that_name_one() -> None:
    calls: list[Any] = []

    class Other(AIOKafkaProducer):
        def _partition(self, *record: Any) -> int:
            calls.append(record)
            there = super()._partition(*record)
            return 0 if there is None else 1 - there

    async with (
        a_cluster() as cluster,
        made(cluster, Other, key_serializer=lambda key: key and key.encode()) as producer,
    ):
        for _ in range(2):
            assert (await producer.send_and_wait("t", b"value", partition=0)).partition == 1
        assert (await producer.send_and_wait("t", b"value")).partition == 0
        await producer.send_and_wait("t", b"value", "k")
        batch = producer.create_batch()
        batch.append(key=None, value=b"value", timestamp=None)
        assert (await (await producer.send_batch(batch, "t", partition=1))).partition == 0
        with pytest.raises(AssertionError, match="has no partition 2"):
            _ = await producer.send("t", b"value", partition=2)
    assert calls[1:5] == [
        ("t", 0, None, b"value", None, b"value"),
        ("t", None, None, b"value", None, b"value"),
        ("t", None, "k", b"value", b"k", b"value"),
        ("t", 1, None, None, None, None),
    ]
