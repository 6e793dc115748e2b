"""A commit that succeeds has every record that was handed over, unless its sender was told that it is not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import (
    IllegalStateException,
    KafkaError,
    TransactionAbortableException,
)
from aioproducer.producer.producer import core_of
from aioproducer.protocol.api_key import ApiKey
from aioproducer.testing import MockProducer
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free
from tests.support.scripted_broker import Held, ScriptedCluster
from tests.support.transactional import PROTOCOLS, a_cluster, all_stable, committed, transactional

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


async def awaited(producer: KafkaProducer, topic: str) -> None:
    await producer.send(topic, b"withdrawn", partition=0)


async def enqueued(producer: KafkaProducer, topic: str) -> None:
    _ = await producer.enqueue(topic, b"withdrawn", partition=0)


async def sent_with_others(producer: KafkaProducer, topic: str) -> None:
    await producer.send_many(topic, [b"withdrawn", b"never tried"], partitions=[0, 0])


async def of_a_table(producer: KafkaProducer, topic: str) -> None:
    pa = pytest.importorskip("pyarrow")
    await producer.send_table(topic, pa.table({"value": [b"withdrawn", b"never tried"]}), value="value")


WAYS = pytest.mark.parametrize("way", [awaited, enqueued, sent_with_others, of_a_table], ids=lambda way: way.__name__)


async def start(work: Awaitable[Any]) -> asyncio.Task[None]:
    """A task that has come as far as it can without an answer."""

    async def run() -> None:
        await work

    task = asyncio.create_task(run())
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def goes_on(cluster: ScriptedCluster, producer: KafkaProducer) -> None:
    async with producer.transaction():
        _ = producer.send("t", b"next", partition=0)
    assert committed(cluster) == [b"next"]
    assert all_stable(cluster)
    assert all_memory_free(producer)


@PROTOCOLS
@WAYS
async def test_a_record_withdrawn_while_it_waits_fails_the_transaction(
    way: Callable[[KafkaProducer, str], Awaitable[None]], protocol: int
) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        held = Held()
        cluster.broker.always(ApiKey.METADATA, held)
        await producer.begin_transaction()
        await cancel(await start(way(producer, "t")))
        with pytest.raises(IllegalStateException, match="must be aborted"):
            _ = producer.send("t", b"more")
        with pytest.raises(TransactionAbortableException, match="cancelled"):
            await producer.commit_transaction()
        cluster.broker.always(ApiKey.METADATA, None)
        held.release()
        await producer.abort_transaction()
        await goes_on(cluster, producer)


async def test_a_record_in_the_accumulator_is_committed_though_its_task_is_cancelled() -> None:
    async with a_cluster() as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        await producer.partitions_for("t")
        held = Held()
        cluster.broker.always(ApiKey.PRODUCE, held)
        async with producer.transaction():
            await cancel(await start(awaited(producer, "t")))
            await cancel(await start(sent_with_others(producer, "t")))
            cluster.broker.always(ApiKey.PRODUCE, None)
            held.release()
        assert committed(cluster) == [b"withdrawn", b"withdrawn", b"never tried"]


async def test_an_enqueue_cancelled_while_the_commit_waits_for_its_record_fails_the_commit() -> None:
    async with a_cluster() as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        held = Held()
        cluster.broker.always(ApiKey.METADATA, held)
        await producer.begin_transaction()
        record = await start(enqueued(producer, "t"))
        commit = await start(producer.commit_transaction())
        await cancel(record)
        with pytest.raises(TransactionAbortableException, match="withdrawn"):
            await commit
        cluster.broker.always(ApiKey.METADATA, None)
        held.release()
        await producer.abort_transaction()
        await goes_on(cluster, producer)


class Source:
    """A stream of tables of one row, each of which comes when it is asked for and ``given``."""

    def __init__(self) -> None:
        self.given: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[Any]:
        pa = pytest.importorskip("pyarrow")
        while (value := await self.given.get()) is not None:
            yield pa.table({"value": [value]})


def make_mock(cluster: EmbeddedCluster) -> KafkaProducer:
    return MockProducer(transactional_id="x", topics=["t"])


@pytest.mark.parametrize("make", [transactional, make_mock], ids=["real", "mock"])
class TestCallsThatSendMany:
    async def test_a_call_cancelled_between_its_records_fails_the_transaction(
        self, make: Callable[[ScriptedCluster], KafkaProducer]
    ) -> None:
        async with a_cluster() as cluster, make(cluster) as producer:
            await producer.init_transactions()
            await producer.partitions_for("t")
            await producer.begin_transaction()
            source = Source()
            source.given.put_nowait(b"first")
            await cancel(await start(producer.send_table("t", source, value="value")))
            with pytest.raises(TransactionAbortableException, match="cancelled before all its records"):
                await producer.commit_transaction()
            await producer.abort_transaction()
            async with producer.transaction():
                pass

    async def test_a_transaction_is_not_committed_before_a_call_has_sent_its_records(
        self, make: Callable[[ScriptedCluster], KafkaProducer]
    ) -> None:
        async with a_cluster() as cluster, make(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            source = Source()
            call = await start(producer.send_table("t", source, value="value"))
            with pytest.raises(IllegalStateException, match="has not sent all its records yet: await it first"):
                await producer.commit_transaction()
            source.given.put_nowait(b"first")
            source.given.put_nowait(None)
            await call
            await producer.commit_transaction()

    async def test_a_call_sends_nothing_to_the_transaction_after_its_own(
        self, make: Callable[[ScriptedCluster], KafkaProducer]
    ) -> None:
        async with a_cluster() as cluster, make(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            source, cancelled = Source(), Source()
            call = asyncio.create_task(producer.send_table("t", source, value="value"))
            other = await start(producer.send_table("t", cancelled, value="value"))
            await producer.abort_transaction()
            await producer.begin_transaction()
            source.given.put_nowait(b"of the transaction that was aborted")
            source.given.put_nowait(None)
            result = await call
            assert (result.count, result.failed) == (1, 1)
            assert "ended before" in str(result.errors[0][1])
            await cancel(other)
            _ = producer.send("t", b"next", partition=0)
            await producer.commit_transaction()
            if isinstance(producer, MockProducer):
                assert [record.value for record in producer.history] == [b"next"]
            else:
                assert cluster.values("t") == [b"next"]

    async def test_a_call_with_wrong_columns_keeps_no_commit_waiting(
        self, make: Callable[[ScriptedCluster], KafkaProducer]
    ) -> None:
        async with a_cluster() as cluster, make(cluster) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                with pytest.raises(ValueError, match="values"):
                    await producer.send_many("t", b"one value")  # type: ignore[arg-type]


@PROTOCOLS
async def test_a_record_refused_while_the_transaction_ends_changes_nothing(protocol: int) -> None:
    """The records are complete by then, and the refusal was told."""
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        held = Held()
        cluster.broker.always(ApiKey.END_TXN, held)
        await producer.begin_transaction()
        _ = producer.send("t", b"committed", partition=0)
        commit = await start(producer.commit_transaction())
        await cluster.broker.received(ApiKey.END_TXN)
        core_of(producer).admission.missing(KafkaError("a thread was refused"))
        cluster.broker.always(ApiKey.END_TXN, None)
        held.release()
        await commit
        assert committed(cluster) == [b"committed"]
        async with producer.transaction():
            _ = producer.send("t", b"next", partition=0)
        assert committed(cluster) == [b"committed", b"next"]
