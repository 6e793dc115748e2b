"""Loops whose tasks begin at once (``asyncio.eager_task_factory``): the producer keeps its promises there."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from aioproducer import Delivery, KafkaProducer, TopicPartition
from aioproducer.errors import DeliveryError, TransactionAbortableException
from aioproducer.protocol.api_key import ApiKey
from tests.support.producing import all_memory_free
from tests.support.scripted_broker import Held, ScriptedCluster, drop
from tests.support.transactional import PROTOCOLS, a_cluster, all_stable, committed, transactional

pytestmark = [
    pytest.mark.skipif(sys.version_info < (3, 12), reason="Python has no eager tasks before 3.12"),
    pytest.mark.timeout(20),
]


def run(test: Coroutine[Any, Any, None]) -> None:
    def make_loop() -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        if sys.version_info >= (3, 12):
            loop.set_task_factory(asyncio.eager_task_factory)
        return loop

    async def checked() -> None:
        async with asyncio.timeout(10):
            await test
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(checked())


async def goes_on(cluster: ScriptedCluster, producer: KafkaProducer) -> None:
    async with producer.transaction():
        for partition in range(3):
            _ = producer.send("t", b"next %d" % partition, partition=partition)
    assert committed(cluster)[-3:] == [b"next 0", b"next 1", b"next 2"]
    assert all_stable(cluster)
    assert all_memory_free(producer)


@PROTOCOLS
def test_transactions(protocol: int) -> None:
    async def test() -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                _ = producer.send("t", b"first", partition=0)
                await producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g")
            async with producer.transaction():
                pass
            await producer.begin_transaction()
            _ = producer.send("t", b"aborted", partition=1)
            await producer.abort_transaction()
            await producer.begin_transaction()
            await producer.abort_transaction()
            cluster.broker.script(ApiKey.END_TXN, drop())
            await goes_on(cluster, producer)

    run(test())


@PROTOCOLS
def test_a_record_placed_when_its_transaction_has_failed_keeps_no_partition_from_the_next(protocol: int) -> None:
    """The next in line is placed where the transaction fails, and its partition named when it has failed."""

    async def test() -> None:
        async with (
            a_cluster(protocol) as cluster,
            transactional(cluster, buffer_memory=4000, batch_size=1000) as producer,
        ):
            await producer.init_transactions()
            await producer.partitions_for("t")
            held = Held()
            cluster.broker.always(ApiKey.PRODUCE, held)
            await producer.begin_transaction()
            _ = producer.send("t", bytes(500), partition=0)
            await cluster.broker.received(ApiKey.PRODUCE)
            large = asyncio.create_task(producer.enqueue("t", bytes(3500), partition=1))
            small = asyncio.create_task(producer.enqueue("t", bytes(10), partition=2))
            large.cancel()
            with suppress(asyncio.CancelledError):
                _ = await large
            with suppress(DeliveryError):
                _ = await small
            cluster.broker.always(ApiKey.PRODUCE, None)
            held.release()
            with pytest.raises(TransactionAbortableException, match="withdrawn"):
                await producer.commit_transaction()
            await producer.abort_transaction()
            await goes_on(cluster, producer)

    run(test())


@PROTOCOLS
@pytest.mark.parametrize("call", ["init_transactions", "commit_transaction", "abort_transaction"])
def test_a_call_that_is_cancelled_goes_on(protocol: int, call: str) -> None:
    api = ApiKey.INIT_PRODUCER_ID if call == "init_transactions" else ApiKey.END_TXN

    async def test() -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            if api is ApiKey.END_TXN:
                await producer.init_transactions()
                await producer.begin_transaction()
                await producer.send("t", b"a", partition=0)
            held = Held()
            cluster.broker.script(api, held)
            task: asyncio.Task[None] = asyncio.create_task(getattr(producer, call)())
            await cluster.broker.received(api)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            held.release()
            await getattr(producer, call)()
            await goes_on(cluster, producer)

    run(test())


@PROTOCOLS
@pytest.mark.parametrize("timeout", [None, 0, 0.05])
def test_close_in_a_transaction_whose_records_call_it_again(protocol: int, timeout: float | None) -> None:
    """The callback's task begins while that of close() is just beginning."""

    async def test() -> None:
        async with a_cluster(protocol) as cluster:
            producer = transactional(cluster, linger_ms=1000)
            await producer.start()
            await producer.init_transactions()
            await producer.begin_transaction()
            again: list[asyncio.Task[None]] = []
            delivery = producer.send("t", b"a", partition=0)
            delivery.add_done_callback(lambda _: again.append(asyncio.create_task(producer.close())))
            await producer.close(timeout)
            await asyncio.wait(again)
            assert len(again) == 1
            assert delivery.done()
            assert committed(cluster) == []

    run(test())


def test_a_delivery_callback_that_ends_the_producer() -> None:
    async def test() -> None:
        async with a_cluster() as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            closing: list[asyncio.Task[None]] = []

            def close(_: Delivery) -> None:
                closing.append(asyncio.create_task(producer.close()))

            await producer.begin_transaction()
            producer.send("t", b"a", partition=0).add_done_callback(close)
            with suppress(Exception):
                await producer.commit_transaction()
            await asyncio.wait(closing)

    run(test())


@pytest.mark.parametrize("begin", [asyncio.create_task, asyncio.ensure_future])
def test_records_of_tasks_that_begin_at_once(begin: Callable[..., asyncio.Task[Delivery]]) -> None:
    async def test() -> None:
        async with a_cluster() as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                tasks = [begin(producer.enqueue("t", b"%d" % number, partition=0)) for number in range(100)]
            for task in tasks:
                _ = await (await task)
            assert committed(cluster) == [b"%d" % number for number in range(100)]

    run(test())
