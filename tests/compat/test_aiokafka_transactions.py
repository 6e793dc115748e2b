"""The drop-in class has the behaviour of aiokafka's transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer import TopicPartition
from aioproducer.compat.aiokafka import AIOKafkaProducer, errors
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from tests.support.leaks import no_leaks as no_leaks
from tests.support.scripted_broker import Held, ScriptedCluster, error

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


@asynccontextmanager
async def running(**arguments: Any) -> AsyncIterator[tuple[ScriptedCluster, AIOKafkaProducer]]:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 2)
        async with make(cluster, **arguments) as producer:
            yield cluster, producer


def make(cluster: ScriptedCluster, **arguments: Any) -> AIOKafkaProducer:
    return AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, **{"transactional_id": "x", "retry_backoff_ms": 5, **arguments}
    )


def batches(cluster: ScriptedCluster) -> list[Any]:
    """Those of partition 0, without markers."""
    return [batch for batch in cluster.log("t").batches() if not batch.is_control]


def aborted(cluster: ScriptedCluster) -> int:
    log = cluster.log("t")
    return len(log.aborted_transactions(0, log.last_stable_offset))


async def test_a_block_is_committed_or_else_aborted() -> None:
    async with running() as (cluster, producer):
        async with producer.transaction():
            metadata = await producer.send_and_wait("t", b"value", partition=0)
        assert (metadata.offset, cluster.values("t")[0]) == (0, b"value")
        assert aborted(cluster) == 0

        async def fail() -> None:
            async with producer.transaction():
                await producer.send_and_wait("t", b"value", partition=0)
                raise LookupError

        with pytest.raises(LookupError):
            await fail()
        assert aborted(cluster) == 1


async def test_an_empty_transaction_sends_no_request() -> None:
    async with running() as (cluster, producer):
        await producer.begin_transaction()
        await producer.commit_transaction()
        await producer.begin_transaction()
        await producer.abort_transaction()
        assert cluster.broker.count(ApiKey.END_TXN) == 0


async def test_the_newer_of_two_fences_off_the_older() -> None:
    async with running() as (cluster, older), make(cluster) as newer:
        async with newer.transaction():
            await newer.send_and_wait("t", b"newer")
        with pytest.raises(errors.ProducerFenced):
            async with older.transaction():
                await older.send_and_wait("t", b"older")


async def test_the_next_one_has_the_same_producer_id() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 2)
        for _ in range(2):
            async with make(cluster) as producer, producer.transaction():
                await producer.send_and_wait("t", b"value", partition=0)
        first, second = batches(cluster)
        assert first.producer_id == second.producer_id
        assert first.producer_epoch < second.producer_epoch


async def test_a_record_that_cannot_be_delivered_ends_the_transaction_by_its_own_error() -> None:
    async with running() as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        await producer.begin_transaction()
        future = await producer.send("t", b"value", partition=0)
        with pytest.raises(errors.TopicAuthorizationFailedError):
            await producer.commit_transaction()
        with pytest.raises(errors.TopicAuthorizationFailedError):
            await future
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_and_wait("t", b"after", partition=0)
        assert [record.value for record in batches(cluster)[-1].records()] == [b"after"]


async def test_a_gap_in_the_sequence_aborts_the_block() -> None:
    async with running() as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
        with pytest.raises(errors.OutOfOrderSequenceNumber):
            async with producer.transaction():
                await producer.send_and_wait("t", b"value", partition=0)
        async with producer.transaction():
            await producer.send_and_wait("t", b"value", partition=0)


async def test_commit_delivers_what_lingers() -> None:
    async with running(linger_ms=60_000) as (_, producer):
        await producer.begin_transaction()
        futures = [await producer.send("t", b"value") for _ in range(10)]
        for number in range(2):
            batch = producer.create_batch()
            batch.append(timestamp=None, key=None, value=b"%d" % number)
            futures.append(await producer.send_batch(batch, "t", partition=0))
        await producer.commit_transaction()
        assert all(future.done() for future in futures)


async def test_cancelling_a_task_that_waits_for_an_end_does_not_undo_it() -> None:
    async with running() as (cluster, producer):
        for end in (producer.commit_transaction, producer.abort_transaction):
            await producer.begin_transaction()
            await producer.send_and_wait("t", b"value", partition=0)
            held = Held()
            cluster.broker.script(ApiKey.END_TXN, held)
            count = cluster.broker.count(ApiKey.END_TXN) + 1
            waiting = asyncio.create_task(end())
            await cluster.broker.received(ApiKey.END_TXN, count)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            if end == producer.commit_transaction:  # the next transaction waits for an abort
                with pytest.raises(errors.IllegalOperation):
                    await producer.begin_transaction()
            held.release()
            await end()
        assert aborted(cluster) == 1


async def test_transactions_need_a_transactional_id() -> None:
    async with running(transactional_id=None) as (_, producer):
        for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
            with pytest.raises(errors.IllegalOperation):
                await call()
        with pytest.raises(errors.IllegalOperation):
            async with producer.transaction():
                pass
        with pytest.raises(errors.IllegalOperation):
            await producer.send_offsets_to_transaction({}, "group")


async def test_records_belong_to_a_transaction() -> None:
    async with running() as (cluster, producer):

        async def refused() -> None:
            batch = producer.create_batch()
            batch.append(timestamp=None, key=None, value=b"value")
            with pytest.raises(errors.IllegalOperation):
                _ = await producer.send("t", b"value", partition=0)
            with pytest.raises(errors.IllegalOperation):
                _ = await producer.send_batch(batch, "t", partition=0)

        await refused()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"value", partition=0)
        held = Held()
        cluster.broker.script(ApiKey.END_TXN, held)
        committing = asyncio.create_task(producer.commit_transaction())
        await cluster.broker.received(ApiKey.END_TXN)
        await refused()
        held.release()
        await committing
        await refused()


async def test_offsets_are_a_part_of_the_transaction() -> None:
    partition = TopicPartition("in", 0)
    async with running() as (cluster, producer):
        cluster.create_topic("in", 1)

        async def fail() -> None:
            async with producer.transaction():
                await producer.send_offsets_to_transaction({partition: 50}, "group")
                raise LookupError

        with pytest.raises(LookupError):
            await fail()
        assert cluster.committed_offsets("group") == {}
        async with producer.transaction():
            await producer.send_offsets_to_transaction({partition: (100, "note")}, "group")
        assert cluster.committed_offsets("group") == {partition: 100}


async def test_wrong_offsets_are_refused() -> None:
    async with running() as (_, producer):
        with pytest.raises(errors.IllegalOperation):
            await producer.send_offsets_to_transaction({}, "group")
        async with producer.transaction():
            for group in (None, ""):
                with pytest.raises(ValueError, match="the group is"):
                    await producer.send_offsets_to_transaction({("in", 0): 1}, group)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="no offsets"):
                await producer.send_offsets_to_transaction({}, "group")
