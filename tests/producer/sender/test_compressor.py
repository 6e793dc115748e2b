from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import pytest

from aioproducer import Delivery, DeliveryError, KafkaProducer, Outcome
from aioproducer.errors import KafkaError, TimeoutException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.batches.split import STEP
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.producer import core_of
from aioproducer.protocol.api_key import ApiKey
from tests.support.inside import parts_of
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free, end_of, make_producer
from tests.support.scripted_broker import ScriptedCluster, drop, error
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


class Threads:
    """Worker threads that finish a batch when the test says so."""

    def __init__(self, producer: KafkaProducer) -> None:
        self.jobs: list[tuple[asyncio.Future[bytes], Callable[[], bytes]]] = []
        parts_of(producer).compressor._run = self.run

    def run(self, function: Callable[..., bytes], *args: Any) -> asyncio.Future[bytes]:
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.jobs.append((future, partial(function, *args)))
        return future

    def finish(self, number: int = 0) -> bytes:
        future, job = self.jobs.pop(number)
        body = job()
        future.set_result(body)
        return body

    async def finish_all(self) -> None:
        """Whatever there is to be compressed, and what comes after it."""
        while self.jobs:
            self.finish()
            await asyncio.sleep(0.1)

    def break_down(self, error: Exception) -> None:
        self.jobs.pop(0)[0].set_exception(error)


@asynccontextmanager
async def compressing(**config: Any) -> AsyncIterator[tuple[ScriptedCluster, KafkaProducer, Threads]]:
    """Every batch is for the threads, and has two records of 100 bytes."""
    defaults = {"compression_type": "gzip", "compression_thread_bytes": 0, "batch_size": 400, "linger_ms": 5}
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, **(defaults | config)) as producer:
            _ = await producer.partitions_for("t")
            threads = Threads(producer)
            try:
                yield cluster, producer, threads
            finally:
                for future, _ in threads.jobs:
                    future.cancel()


def values(count: int) -> list[bytes]:
    return [b"%100d" % number for number in range(count)]


def send(producer: KafkaProducer, count: int) -> list[Delivery]:
    return [producer.send("t", value) for value in values(count)]


@virtual
async def test_batches_go_out_in_order_whichever_is_compressed_first(world: World) -> None:
    async with compressing() as (cluster, producer, threads):
        deliveries = send(producer, 7)
        await asyncio.sleep(1)
        assert len(threads.jobs) == 3
        threads.finish(2)
        threads.finish(1)
        await asyncio.sleep(1)
        assert cluster.broker.count(ApiKey.PRODUCE) == 0
        await threads.finish_all()
        assert [delivery.result().offset for delivery in deliveries] == list(range(7))
        assert cluster.values("t") == values(7)
        assert [batch.base_sequence for batch in cluster.log("t").batches()] == [0, 2, 4, 6]
        assert all_memory_free(producer)


@virtual
async def test_a_batch_that_lingered_and_one_that_is_flushed(world: World) -> None:
    async with compressing(linger_ms=1000) as (cluster, producer, threads):
        lingering = producer.send("t", b"lingers")
        await asyncio.sleep(0.9)
        assert not threads.jobs
        await asyncio.sleep(0.2)
        threads.finish()
        assert (await lingering).offset == 0
        flushed = producer.send("t", b"flushed")
        flushing = asyncio.ensure_future(producer.flush())
        await asyncio.sleep(0.1)
        assert not flushing.done()
        threads.finish()
        await flushing
        assert flushed.result().offset == 1
        assert cluster.values("t") == [b"lingers", b"flushed"]


@virtual
async def test_small_batches_are_compressed_on_the_loop(world: World) -> None:
    async with compressing(compression_thread_bytes=200) as (cluster, producer, threads):
        assert (await producer.send("t", bytes(100))).offset == 0
        assert not threads.jobs
        large = send(producer, 2)
        await asyncio.sleep(1)
        threads.finish()
        assert [(await delivery).offset for delivery in large] == [1, 2]
        assert {batch.codec.name for batch in cluster.log("t").batches()} == {"GZIP"}


@virtual
async def test_the_loop_compresses_when_no_thread_takes_work(world: World) -> None:
    """At the end of the interpreter."""
    async with compressing() as (cluster, producer, _):
        threads = ThreadPoolExecutor()
        threads.shutdown()
        parts_of(producer).compressor._run = partial(asyncio.get_running_loop().run_in_executor, threads)
        deliveries = send(producer, 5)
        await producer.flush()
        assert [delivery.result().offset for delivery in deliveries] == list(range(5))
        assert {batch.codec.name for batch in cluster.log("t").batches()} == {"GZIP"}


@virtual
async def test_its_memory_is_charged_until_it_is_compressed(world: World) -> None:
    async with compressing(buffer_memory=10**6) as (cluster, producer, threads):
        pool = core_of(producer).accumulator.pool
        cluster.broker.script(ApiKey.PRODUCE, drop())
        deliveries = send(producer, 2)
        await asyncio.sleep(1)
        before = pool.available
        body = threads.finish()
        await asyncio.sleep(0)
        assert pool.available > before
        assert len(body) < 200
        assert [(await delivery).offset for delivery in deliveries] == [0, 1]  # the second attempt sends the same
        assert not threads.jobs


@virtual
async def test_a_batch_that_expires_while_it_is_compressed(world: World) -> None:
    async with compressing(delivery_timeout_ms=1000, request_timeout_ms=900) as (cluster, producer, threads):
        early, late = send(producer, 2), None
        await asyncio.sleep(0.5)
        obstacle = producer.explain("t", 0).obstacles[0]
        assert obstacle.reason is Reason.COMPRESSION
        assert "worker thread" in obstacle.text
        late = send(producer, 2)
        await asyncio.sleep(0.6)
        for delivery in early:
            ended = delivery.exception()
            assert isinstance(ended, DeliveryError)
            assert isinstance(ended, TimeoutException)
            assert ended.outcome is Outcome.NOT_SENT
            assert "being compressed" in str(ended)
        assert threads.finish() == b""  # its records are let go
        threads.finish()
        assert [(await delivery).offset for delivery in late] == [0, 1]
        assert [batch.base_sequence for batch in cluster.log("t").batches()] == [0]
        assert all_memory_free(producer)


@virtual
async def test_the_parts_of_a_batch_too_large_are_compressed_in_threads(world: World) -> None:
    async with compressing(batch_size=1000) as (cluster, producer, threads):
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.MESSAGE_TOO_LARGE))
        deliveries = send(producer, 8)
        await asyncio.sleep(1)
        threads.finish()
        await asyncio.sleep(1)
        assert producer.metrics()["batch-split-total"] == 0
        threads.finish()  # decompressed
        await asyncio.sleep(1)
        assert producer.metrics()["batch-split-total"] == 1
        assert len(threads.jobs) > 2
        threads.finish(len(threads.jobs) - 1)
        await asyncio.sleep(1)
        assert cluster.broker.count(ApiKey.PRODUCE) == 1, "what comes first is not compressed yet"
        await threads.finish_all()
        assert [(await delivery).offset for delivery in deliveries] == list(range(8))
        assert cluster.values("t") == values(8)
        assert next(iter(cluster.log("t").batches())).base_sequence == 0
        assert all_memory_free(producer)


@virtual
async def test_parts_that_expire_or_are_aborted_while_they_are_compressed(world: World) -> None:
    async with compressing(batch_size=1000, delivery_timeout_ms=3000, request_timeout_ms=900) as (
        cluster,
        producer,
        threads,
    ):
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.MESSAGE_TOO_LARGE))
        deliveries = send(producer, 8)
        await asyncio.sleep(1)
        for _ in range(2):  # compressed, and decompressed
            threads.finish()
            await asyncio.sleep(0.5)
        await asyncio.sleep(2)
        for delivery in deliveries:
            ended = delivery.exception()
            assert isinstance(ended, TimeoutException)
            assert ended.outcome is Outcome.NOT_SENT
        while threads.jobs:
            assert threads.finish() == b""
        late = send(producer, 2)
        await asyncio.sleep(1)
        await threads.finish_all()
        assert [(await delivery).offset for delivery in late] == [0, 1]
        assert all_memory_free(producer)


@pytest.mark.parametrize("timeout", [0, 2])
@virtual
async def test_close_gives_up_what_is_still_compressed_when_its_time_is_over(world: World, timeout: float) -> None:
    async with compressing() as (cluster, producer, threads):
        deliveries = send(producer, 4)
        await asyncio.sleep(1)
        closing = asyncio.ensure_future(producer.close(timeout))
        await asyncio.sleep(timeout + 0.5)
        for delivery in deliveries:
            ended = delivery.exception()
            assert isinstance(ended, DeliveryError)
            assert ended.outcome is Outcome.NOT_SENT
        assert not closing.done()  # the threads are still at it
        while threads.jobs:
            assert threads.finish() == b""
        await closing
        assert cluster.broker.count(ApiKey.PRODUCE) == 0
        assert all_memory_free(producer)


@virtual
async def test_close_delivers_what_is_being_compressed(world: World) -> None:
    async with compressing() as (_, producer, threads):
        deliveries = send(producer, 4)
        closing = asyncio.ensure_future(producer.close())
        await asyncio.sleep(1)
        await threads.finish_all()
        await closing
        assert [delivery.result().offset for delivery in deliveries] == list(range(4))


@virtual
async def test_a_cancellation_during_compression_harms_no_other_record(world: World) -> None:
    async with compressing() as (_, producer, threads):
        first, second = send(producer, 2)

        async def wait() -> None:
            _ = await first

        waiting = asyncio.ensure_future(wait())
        await asyncio.sleep(1)
        waiting.cancel()
        threads.finish()
        assert (await second).offset == 1
        assert waiting.cancelled()
        assert first.result().offset == 0


@virtual
async def test_a_compression_that_fails_fails_everything_with_its_cause(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with compressing() as (_, producer, threads):
        deliveries = send(producer, 4)
        await asyncio.sleep(1)
        threads.break_down(MemoryError("no more"))
        for delivery in deliveries:
            ended = await end_of(delivery)
            assert isinstance(ended, KafkaError)
            assert "MemoryError: no more" in str(ended)
        threads.jobs.clear()
        parts_of(producer).compressor._under_way.clear()
    assert "unforeseen error" in caplog.text


async def test_threads_of_its_own_that_end_with_it() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        config = {"compression_type": "zstd", "compression_thread_bytes": 1000, "batch_size": 2000}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            deliveries = [producer.send("t", b"%100d" % number) for number in range(500)]
            await producer.flush()
            assert [delivery.result().offset for delivery in deliveries] == list(range(500))
            assert any(thread.name.startswith("aioproducer compression") for thread in threading.enumerate())
        assert cluster.values("t") == [b"%100d" % number for number in range(500)]
    for thread in threading.enumerate():
        if thread.name.startswith("aioproducer compression"):
            thread.join()


# Batches that are too large for the broker


@asynccontextmanager
async def splitting(**config: Any) -> AsyncIterator[tuple[ScriptedCluster, KafkaProducer, Threads, list[Delivery]]]:
    """A batch of eight records that the broker has refused, and a thread that is about to decompress it."""
    async with compressing(batch_size=4000, **config) as (cluster, producer, threads):
        before = producer.send("t", b"before")
        await asyncio.sleep(0.1)
        await threads.finish_all()
        assert (await before).offset == 0
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.MESSAGE_TOO_LARGE))
        deliveries = [producer.send("t", value) for value in values(8)]
        await asyncio.sleep(0.1)
        threads.finish()
        await asyncio.sleep(0.1)
        assert len(threads.jobs) == 1
        assert producer.metrics()["batch-split-total"] == 0
        yield cluster, producer, threads, deliveries


@virtual
async def test_a_batch_to_split_is_decompressed_in_a_thread_and_keeps_its_place(world: World) -> None:
    async with splitting() as (cluster, producer, threads, deliveries):
        behind = producer.send("t", b"behind")
        await asyncio.sleep(0.1)
        assert producer.explain("t", 0).reason is Reason.COMPRESSION
        assert "decompressing, to split the batch" in str(producer.explain("t", 0))
        flushed = asyncio.create_task(producer.flush())
        await threads.finish_all()
        await flushed
        assert cluster.values("t") == [b"before", *values(8), b"behind"]
        assert [(await delivery).offset for delivery in [*deliveries, behind]] == list(range(1, 10))
        assert producer.metrics()["batch-split-total"] == 1
        assert all_memory_free(producer)


@virtual
async def test_a_batch_that_expires_before_its_split_ends_once(world: World) -> None:
    async with splitting(delivery_timeout_ms=2000, request_timeout_ms=1000) as (cluster, producer, threads, deliveries):
        for delivery in deliveries:
            ended = await end_of(delivery)
            assert isinstance(ended, TimeoutException)
            assert isinstance(ended, DeliveryError)
            assert ended.outcome is Outcome.NOT_SENT
            assert "MESSAGE_TOO_LARGE" in str(ended)
        assert threads.finish() == b"", "its bytes were let go"
        await asyncio.sleep(0.1)
        after = producer.send("t", b"after")
        await asyncio.sleep(0.1)
        await threads.finish_all()
        assert (await after).offset == 1
        assert cluster.values("t") == [b"before", b"after"]
        assert producer.metrics()["batch-split-total"] == 0
        assert all_memory_free(producer)


@virtual
async def test_closing_ends_what_waits_to_be_split(world: World) -> None:
    async with splitting() as (_, producer, threads, deliveries):
        closing = asyncio.create_task(producer.close(0))
        ended = [await end_of(delivery) for delivery in deliveries]
        assert all(isinstance(one, KafkaError) for one in ended)
        threads.finish()
        await closing
        assert producer.metrics()["batch-split-total"] == 0


@virtual
async def test_a_batch_is_split_at_once_when_no_thread_decompresses_it(world: World) -> None:
    def refuse(*_: object) -> asyncio.Future[bytes]:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    async with compressing(batch_size=4000) as (cluster, producer, threads):
        parts_of(producer).compressor._run = refuse
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.MESSAGE_TOO_LARGE))
        deliveries = [producer.send("t", value) for value in values(8)]
        await producer.flush()
        assert [(await delivery).offset for delivery in deliveries] == list(range(8))
        assert producer.metrics()["batch-split-total"] == 1
        assert not threads.jobs


@virtual
async def test_a_batch_that_cannot_be_decompressed_fails_the_producer(world: World) -> None:
    async with splitting() as (_, _, threads, deliveries):
        threads.break_down(ZeroDivisionError("bug"))
        ended = [await end_of(delivery) for delivery in deliveries]
        assert all(isinstance(one, KafkaError) for one in ended)


class OneStep:
    """A slice of time that is always over."""

    def begin(self) -> None:
        pass

    def over(self) -> bool:
        return True


@asynccontextmanager
async def cutting(count: int = 3 * STEP, **config: Any) -> AsyncIterator[tuple[ScriptedCluster, Any, list[Delivery]]]:
    """A batch of many records has been decompressed, and the first of them are in its first part."""
    large = {"batch_size": 1 << 20, "linger_ms": 1000, "buffer_memory": 1 << 23}
    async with compressing(**large, **config) as (cluster, producer, threads):
        parts_of(producer).compressor._slice = cast("Any", OneStep())
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.MESSAGE_TOO_LARGE))
        deliveries = [producer.send("t", b"%d" % number) for number in range(count)]
        flushed = asyncio.create_task(producer.flush())
        await asyncio.sleep(0.1)
        threads.finish()
        await asyncio.sleep(0.1)
        threads.finish()  # decompressed
        for _ in range(2):
            await asyncio.sleep(0)
        assert producer.explain("t", 0).reason is Reason.COMPRESSION
        yield cluster, producer, deliveries
        await threads.finish_all()
        await flushed
        assert all_memory_free(producer)


@virtual
async def test_a_large_batch_is_cut_with_turns_of_the_loop_in_between(world: World) -> None:
    async with cutting() as (cluster, producer, deliveries):
        turns = 0
        while producer.metrics()["batch-split-total"] == 0:
            await asyncio.sleep(0)
            turns += 1
        assert 1 < turns < 20
    assert [delivery.result().offset for delivery in deliveries] == list(range(len(deliveries)))
    assert cluster.values("t") == [b"%d" % number for number in range(len(deliveries))]


@virtual
async def test_a_batch_may_end_while_it_is_cut(world: World) -> None:
    async with cutting(delivery_timeout_ms=4000, request_timeout_ms=1000) as (_, producer, deliveries):
        compressor = parts_of(producer).compressor
        ((queue, batch, step),) = compressor._steps
        compressor._steps[0] = (queue, batch, lambda: step is None)  # never the last one
        assert isinstance(await end_of(deliveries[0]), TimeoutException)
        await asyncio.sleep(0.1)
        assert not compressor._steps
        assert producer.metrics()["batch-split-total"] == 0


@virtual
async def test_a_bug_while_a_batch_is_cut_fails_the_producer(world: World) -> None:
    async with cutting() as (_, producer, deliveries):
        compressor = parts_of(producer).compressor
        queue, batch, _ = compressor._steps[0]
        compressor._steps[0] = (queue, batch, lambda: 1 // 0 > 0)
        assert isinstance(await end_of(deliveries[0]), KafkaError)
