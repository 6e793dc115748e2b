"""The cases of ``stalls``: in each of them something happens to many things at once."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import DeliveryError, NetworkException, ProducerFencedException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.producer import core_of
from aioproducer.protocol.api_key import ApiKey
from aioproducer.testing import ThreadedCluster
from benchmarks.stress import canned_broker
from benchmarks.stress.measured_loop import Held, MeasuredLoop
from benchmarks.stress.producer_parts import parts_of, sender_of

VALUE = bytes(900)
OF_A_BATCH = 1536 + 1024
"""The memory that an open batch is charged at first: its objects, and batch.initial.size."""


class WrongRun(Exception):
    """Something else happened than was to be measured."""


async def bare_tasks(loop: MeasuredLoop, size: int) -> Held:
    """No producer: what asyncio itself needs to cancel as many tasks."""
    tasks = [asyncio.create_task(asyncio.sleep(60)) for _ in range(size)]
    await asyncio.sleep(0.1)
    return await _cancelled(loop, tasks)


async def waiters(loop: MeasuredLoop, size: int) -> Held:
    """``enqueue`` callers that wait for memory, all cancelled."""
    return await _waiters(loop, size, _enqueue)


async def senders(loop: MeasuredLoop, size: int) -> Held:
    """Tasks that await ``send`` and wait for memory, all cancelled."""
    return await _waiters(loop, size, _send)


async def _waiters(loop: MeasuredLoop, size: int, call: Callable[[KafkaProducer], Coroutine[Any, Any, object]]) -> Held:
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("t", 1)
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, buffer_memory=20_000, max_block_ms=600_000
        )
        await producer.start()
        try:
            await producer.partitions_for("t")
            await cluster.stop_node(0)
            tasks = [asyncio.create_task(call(producer)) for _ in range(size)]
            await asyncio.sleep(0.1)
            if len(core_of(producer).lot) < size // 2:  # the first are in the accumulator
                raise WrongRun("the callers do not wait")
            return await _cancelled(loop, tasks)
        finally:
            await producer.close(0)


async def _enqueue(producer: KafkaProducer) -> None:
    _ = await producer.enqueue("t", VALUE)


async def _send(producer: KafkaProducer) -> None:
    _ = await producer.send("t", VALUE)


async def starting(loop: MeasuredLoop, size: int) -> Held:
    """Tasks that await ``send``, of a producer that has just been started and has memory for all of them."""
    with ThreadedCluster() as cluster:
        cluster.create_topic("t", 4)
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, buffer_memory=1 << 28)
        await producer.start()
        try:
            tasks = [asyncio.create_task(_send(producer)) for _ in range(size)]
            gc.collect()
            with loop.measured() as held:
                await asyncio.sleep(0)
                if len(core_of(producer).lot) < size:
                    raise WrongRun("the tasks do not wait")
                await _all_succeed(tasks)
        finally:
            await producer.close(0)
    return held


async def _all_succeed(tasks: Sequence[asyncio.Task[Any]]) -> None:
    await asyncio.wait(tasks)
    for task in tasks:
        task.result()


async def forgotten(loop: MeasuredLoop, size: int) -> Held:
    """Records that have no room, and whose deliveries are held and never awaited."""
    producer = KafkaProducer(bootstrap_servers="127.0.0.1:1", parked_memory=0)
    await producer.start()
    try:
        ended = asyncio.Event()
        deliveries = [producer.send("t", VALUE) for _ in range(size)]
        deliveries[-1].add_done_callback(lambda _: ended.set())
        gc.collect()
        with loop.measured() as held:
            await ended.wait()
        if not all(isinstance(one.exception(), DeliveryError) for one in deliveries):
            raise WrongRun("not all records failed")
    finally:
        await producer.close(0)
    return held


async def _cancelled(loop: MeasuredLoop, tasks: Sequence[asyncio.Task[Any]]) -> Held:
    order = list(tasks)
    random.Random(1).shuffle(order)
    gc.collect()
    with loop.measured() as held:
        for task in order:
            task.cancel()
        await asyncio.wait(tasks)
        await asyncio.sleep(0.1)
    return held


async def expiry(loop: MeasuredLoop, size: int) -> Held:
    """A batch in each of many partitions, whose broker is gone until delivery.timeout.ms is over."""
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("t", size)
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            linger_ms=0,
            request_timeout_ms=1000,
            delivery_timeout_ms=1500,
            buffer_memory=1 << 28,
        )
        await producer.start()
        try:
            await producer.partitions_for("t")
            await cluster.stop_node(0)
            deliveries = [producer.send("t", b"v", partition=partition) for partition in range(size)]
            gc.collect()
            with loop.measured() as held:
                time.sleep(2)  # noqa: ASYNC251 - as if the process had stood still: all are due when it wakes
                with contextlib.suppress(DeliveryError):
                    await deliveries[-1]
                await asyncio.sleep(0.1)
            if not all(isinstance(one.exception(), DeliveryError) for one in deliveries):
                raise WrongRun("not all batches expired")
        finally:
            await producer.close(0)
    return held


async def flush(loop: MeasuredLoop, size: int) -> Held:
    """Lingering batches in many partitions, and a call that waits for all of them."""
    return await _lingering(loop, size, KafkaProducer.flush)


async def hurry(loop: MeasuredLoop, size: int) -> Held:
    """Lingering batches in many partitions, and a record for which there is no memory."""

    async def one_more(producer: KafkaProducer) -> None:
        _ = await producer.send("t", bytes(150_000), partition=0)

    return await _lingering(loop, size, one_more)


async def open_batches(loop: MeasuredLoop, size: int) -> Held:
    """Small records for lingering batches in many partitions, which need no memory for them."""

    async def five_more(producer: KafkaProducer) -> None:
        for _ in range(5):
            for partition in range(size):
                _ = await producer.enqueue("t", b"v", partition=partition)

    return await _lingering(loop, size, five_more)


async def table(loop: MeasuredLoop, size: int) -> Held:
    """A table of five records for each of many partitions, in turn."""
    import pyarrow as pa

    rows = pa.table({"value": [bytes(50)] * (5 * size), "partition": [*range(size)] * 5})

    async def send(producer: KafkaProducer) -> None:
        result = await producer.send_table("t", rows, value="value", partition="partition")
        if result.delivered != 5 * size:
            raise WrongRun("not all records were delivered")

    with ThreadedCluster() as cluster:
        cluster.create_topic("t", size)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.partitions_for("t")
            gc.collect()
            with loop.measured() as held:
                await asyncio.create_task(send(producer))
    return held


@contextlib.asynccontextmanager
async def _patient_producer(size: int, **config: Any) -> AsyncIterator[KafkaProducer]:
    """A producer with memory for a lingering batch in each partition of the topic, and for a large record."""
    with ThreadedCluster() as cluster:
        cluster.create_topic("t", size)
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            linger_ms=600_000,
            delivery_timeout_ms=700_000,
            buffer_memory=size * OF_A_BATCH + 100_000,
            **config,
        )
        await producer.start()
        try:
            await producer.partitions_for("t")
            yield producer
        finally:
            await producer.close(0)


async def _lingering(
    loop: MeasuredLoop, size: int, call: Callable[[KafkaProducer], Coroutine[Any, Any, object]]
) -> Held:
    async with _patient_producer(size) as producer:
        for partition in range(size):
            _ = producer.send("t", b"v", partition=partition)
        gc.collect()
        with loop.measured() as held:
            await asyncio.create_task(call(producer))
        if producer.metrics()["record-error-total"]:
            raise WrongRun("not all records were delivered")
    return held


async def close(loop: MeasuredLoop, size: int) -> Held:
    """Lingering batches in many partitions, and a producer that is closed at once."""
    return await _given_up(loop, size, lambda producer: producer.close(0))


async def close_parked(loop: MeasuredLoop, size: int) -> Held:
    """Tasks that await ``send`` without metadata, and their producer is closed at once."""
    producer = KafkaProducer(bootstrap_servers="127.0.0.1:1", buffer_memory=1 << 28)
    await producer.start()
    tasks = [asyncio.create_task(_send(producer)) for _ in range(size)]
    await asyncio.sleep(0)
    if len(core_of(producer).lot) < size:
        raise WrongRun("the tasks do not wait")
    gc.collect()
    with loop.measured() as held:
        await asyncio.create_task(producer.close(0))
        await asyncio.wait(tasks)
    if not all(isinstance(task.exception(), DeliveryError) for task in tasks):
        raise WrongRun("not all records failed")
    return held


async def abort(loop: MeasuredLoop, size: int) -> Held:
    """Lingering batches in many partitions, and their transaction is aborted."""
    return await _given_up(loop, size, KafkaProducer.abort_transaction, transactional_id="stalls")


async def unusable(loop: MeasuredLoop, size: int) -> Held:
    """Lingering batches in many partitions, and their producer is fenced."""

    async def fence(producer: KafkaProducer) -> None:
        sender_of(producer).fail(ProducerFencedException("a newer producer has the transactional.id"))
        await producer.flush()

    return await _given_up(loop, size, fence)


async def _given_up(
    loop: MeasuredLoop, size: int, call: Callable[[KafkaProducer], Coroutine[Any, Any, object]], **config: Any
) -> Held:
    async with _patient_producer(size, **config) as producer:
        if config:
            await producer.init_transactions()
            await producer.begin_transaction()
        deliveries = [producer.send("t", b"v", partition=partition) for partition in range(size)]
        gc.collect()
        with loop.measured() as held:
            await asyncio.create_task(call(producer))
        if not all(isinstance(one.exception(), DeliveryError) for one in deliveries):
            raise WrongRun("not all batches were given up")
    return held


class _Arrivals(NamedTuple):
    """Two answers with the same metadata."""

    first: Held
    again: Held


async def first_metadata(loop: MeasuredLoop, size: int) -> Held:
    """The producer gets the metadata of a topic with many partitions."""
    return (await _metadata(loop, size)).first


async def metadata_again(loop: MeasuredLoop, size: int) -> Held:
    """It gets the same metadata again, without changes."""
    return (await _metadata(loop, size)).again


async def _metadata(loop: MeasuredLoop, size: int) -> _Arrivals:
    made: list[bytes] = []

    def answer(key: int, port: int) -> bytes:
        if key == ApiKey.API_VERSIONS:
            return canned_broker.versions()
        if not made:
            made.append(canned_broker.metadata(port, "t", size))
        return made[0]

    with canned_broker.serving(answer) as port:
        producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", enable_idempotence=False)
        await producer.start()
        try:
            with loop.measured() as first:
                if len(await producer.partitions_for("t")) != size:
                    raise WrongRun("not all partitions are known")
                await asyncio.sleep(0.1)
            return _Arrivals(first, await _again(loop, producer))
        finally:
            await producer.close(0)


async def moved(loop: MeasuredLoop, size: int) -> Held:
    """All partitions of a topic get other leaders."""
    return await _changed(
        loop, size, lambda port: canned_broker.metadata(port, "t", size, leader=1, epoch=2, topic_id=1)
    )


async def created_anew(loop: MeasuredLoop, size: int) -> Held:
    """A topic with many partitions is replaced by one with a single partition."""
    return await _changed(loop, size, lambda port: canned_broker.metadata(port, "t", 1, topic_id=2))


async def _changed(loop: MeasuredLoop, size: int, after: Callable[[int], bytes]) -> Held:
    """The producer knows a topic with many partitions, and then gets other metadata of it."""
    said = b""

    def answer(key: int, port: int) -> bytes:
        return canned_broker.versions() if key == ApiKey.API_VERSIONS else said

    with canned_broker.serving(answer) as port:
        said = canned_broker.metadata(port, "t", size, topic_id=1)
        producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", enable_idempotence=False)
        await producer.start()
        try:
            if len(await producer.partitions_for("t")) != size:
                raise WrongRun("not all partitions are known")
            said = after(port)
            return await _again(loop, producer)
        finally:
            await producer.close(0)


async def many_ask(loop: MeasuredLoop, size: int) -> Held:
    """Callers of ``partitions_for`` that wait for the same metadata."""

    def answer(key: int, port: int) -> bytes:
        return canned_broker.versions() if key == ApiKey.API_VERSIONS else canned_broker.metadata(port, "t", 4)

    async def ask(producer: KafkaProducer) -> None:
        _ = await producer.partitions_for("t")

    return await _waiting_for_metadata(loop, size, answer, ask)


async def forbidden(loop: MeasuredLoop, size: int) -> Held:
    """Tasks that await ``send`` to a topic that they may not write to."""

    def answer(key: int, port: int) -> bytes:
        if key == ApiKey.API_VERSIONS:
            return canned_broker.versions()
        return canned_broker.metadata(port, "t", 0, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    async def fail(producer: KafkaProducer) -> None:
        try:
            await _send(producer)
        except DeliveryError:
            return
        raise WrongRun("the record did not fail")

    return await _waiting_for_metadata(loop, size, answer, fail)


async def _waiting_for_metadata(
    loop: MeasuredLoop,
    size: int,
    answer: canned_broker.Answer,
    call: Callable[[KafkaProducer], Coroutine[Any, Any, object]],
) -> Held:
    """So many callers, once they wait, until all have ended."""
    with canned_broker.serving(answer) as port:
        producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", enable_idempotence=False, buffer_memory=1 << 28)
        await producer.start()
        try:
            tasks = [asyncio.create_task(call(producer)) for _ in range(size)]
            await asyncio.sleep(0)
            gc.collect()
            with loop.measured() as held:
                await _all_succeed(tasks)
        finally:
            await producer.close(0)
    return held


async def lost(loop: MeasuredLoop, size: int) -> Held:
    """A connection ends with as many requests as there may be on it. Their batches, 200 in each, are sent again."""

    def answer(key: int, port: int) -> bytes | None:
        if key == ApiKey.API_VERSIONS:
            return canned_broker.versions()
        return canned_broker.metadata(port, "t", size) if key == ApiKey.METADATA else None

    with canned_broker.serving(answer) as port:
        producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", enable_idempotence=False, linger_ms=0)
        await producer.start()
        try:
            await producer.partitions_for("t")
            for partition in range(size):  # ready before there is a connection to their leader
                _ = producer.send("t", b"v", partition=partition)
            async with asyncio.timeout(10):
                while sender_of(producer).requests_in_flight() * 200 < size:
                    await sender_of(producer).passed()
            connection = parts_of(producer).client.links[0].connection
            assert connection is not None
            gc.collect()
            with loop.measured() as held:
                loop.call_soon(connection.close, NetworkException("the broker is gone"))
                await asyncio.wait([connection.ended])
            if producer.metrics()["record-retry-total"] != size:
                raise WrongRun("not all batches were under way")
        finally:
            await producer.close(0)
    return held


async def first_topics(loop: MeasuredLoop, size: int) -> Held:
    """The producer gets the metadata of many topics, for each of which a record waits, and delivers these."""
    return (await _topics(loop, size)).first


async def topics_again(loop: MeasuredLoop, size: int) -> Held:
    """It gets the same metadata again, without changes."""
    return (await _topics(loop, size)).again


async def idle_topics(loop: MeasuredLoop, size: int) -> Held:
    """All metadata arrives when the topics have not been used for metadata.max.idle.ms."""
    return (await _topics(loop, size, idle=5.0)).again


async def _topics(loop: MeasuredLoop, size: int, idle: float = 300.0) -> _Arrivals:
    """``idle`` is metadata.max.idle.ms in seconds; the second answer comes after it if that is short."""
    with ThreadedCluster() as cluster:
        topics = [f"t{number}" for number in range(size)]
        for topic in topics:
            cluster.create_topic(topic, 1)
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            delivery_timeout_ms=600_000,
            metadata_max_idle_ms=int(idle * 1000),
        )
        await producer.start()
        try:
            deliveries = [producer.send(topic, VALUE) for topic in topics]
            gc.collect()
            with loop.measured() as first:
                await producer.flush()
            if not all(delivery.done() and delivery.exception() is None for delivery in deliveries):
                raise WrongRun("not all records are delivered")
            if idle < 300:
                await asyncio.sleep(idle + 0.1)
            return _Arrivals(first, await _again(loop, producer))
        finally:
            await producer.close(0)


async def _again(loop: MeasuredLoop, producer: KafkaProducer) -> Held:
    """All metadata arrives once more."""
    gc.collect()
    client = parts_of(producer).client
    known = client.metadata.version
    with loop.measured() as held:
        client.request_update()
        while client.metadata.version == known:
            await client.changes.next()
        await asyncio.sleep(0.1)
    return held


async def hostile_metadata(loop: MeasuredLoop, size: int) -> Held:
    """So many bytes of metadata, of a topic with as many partitions as they can mean."""
    return await _answered(loop, ApiKey.METADATA, canned_broker.empty_partitions(size))


async def zeros(loop: MeasuredLoop, size: int) -> Held:
    """So many zeros where the first request has to be answered."""
    return await _answered(loop, ApiKey.API_VERSIONS, bytes(size))


async def zeros_of_metadata(loop: MeasuredLoop, size: int) -> Held:
    """So many zeros where metadata is to come, which may be large."""
    return await _answered(loop, ApiKey.METADATA, bytes(size))


async def _answered(loop: MeasuredLoop, to: ApiKey, body: bytes) -> Held:
    """Until the producer is done with this answer."""
    requests = 0

    def answer(key: int, port: int) -> bytes | None:
        nonlocal requests
        if key != to:
            return canned_broker.versions()
        requests += 1
        return body if requests == 1 else None

    with canned_broker.serving(answer) as port:
        producer = KafkaProducer(
            bootstrap_servers=f"127.0.0.1:{port}",
            enable_idempotence=False,
            retry_backoff_ms=10,
            reconnect_backoff_ms=10,
        )
        await producer.start()
        try:
            with loop.measured() as held:
                wanted = asyncio.create_task(producer.partitions_for("t"))
                while requests < 2 and not wanted.done():
                    _ = await asyncio.wait([wanted], timeout=0.05)
                wanted.cancel()
                _ = await asyncio.wait([wanted])
        finally:
            await producer.close(0)
    return held


async def split(loop: MeasuredLoop, size: int) -> Held:
    """A batch of many records is too large for the broker, and so are its first parts."""
    return await _split(loop, partitions=1, records=size)


async def splits(loop: MeasuredLoop, size: int) -> Held:
    """Batches of 1000 records that are too large for the broker, one in each of many partitions, all in one request."""
    return await _split(loop, partitions=size, records=1000)


async def refusals(loop: MeasuredLoop, size: int) -> Held:
    """Small batches that are too large for the broker, which are decompressed on the loop, in many requests."""
    return await _split(loop, partitions=size, records=100)


async def _split(loop: MeasuredLoop, *, partitions: int, records: int) -> Held:
    content = random.Random(1)
    with ThreadedCluster() as cluster:
        cluster.create_topic("t", partitions, configs={"max.message.bytes": str(records * 10)})
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            batch_size=100 * records,
            buffer_memory=1 << 30,
            compression_type="gzip",
            linger_ms=600_000,
            max_request_size=1 << 25,
        )
        await producer.start()
        try:
            await producer.partitions_for("t")
            values = [content.randbytes(20) + bytes(30) for _ in range(records)]
            for partition in range(partitions):
                for value in values:
                    _ = producer.send("t", value, partition=partition)
            gc.collect()
            with loop.measured() as held:
                await producer.flush()
            metrics = producer.metrics()
            if metrics["batch-split-total"] < partitions or metrics["record-error-total"]:
                raise WrongRun("not all batches were split")
        finally:
            await producer.close(0)
    return held


@dataclass(frozen=True)
class Case:
    """Something that happens, at a size, and what is held meanwhile."""

    name: str
    title: str
    size: int
    run: Callable[[MeasuredLoop, int], Awaitable[Held]]
    aioproducer: bool = True
    """False for what is only there to be compared with."""


CASES = (
    Case("bare-tasks", "tasks of asyncio cancelled, without a producer", 20_000, bare_tasks, aioproducer=False),
    Case("waiters", "`enqueue` callers that wait for memory, cancelled", 20_000, waiters),
    Case("senders", "tasks that await `send` and wait for memory, cancelled", 20_000, senders),
    Case("starting", "tasks that await `send`, of a producer that has just been started", 20_000, starting),
    Case("forgotten", "records without room whose deliveries are not awaited", 20_000, forgotten),
    Case("expiry", "partitions whose batches expire at once", 10_000, expiry),
    Case("flush", "partitions with a lingering batch each, flushed", 10_000, flush),
    Case(
        "open-batches", "partitions with a lingering batch each, and five more records for each", 10_000, open_batches
    ),
    Case("table", "partitions, and a table with five records for each", 10_000, table),
    Case("hurry", "partitions with a lingering batch each, and a record that waits for memory", 10_000, hurry),
    Case("close", "partitions with a lingering batch each, closed by `close(0)`", 10_000, close),
    Case("close-parked", "tasks that await `send` without metadata, ended by `close(0)`", 20_000, close_parked),
    Case("abort", "partitions with a lingering batch each, of a transaction that is aborted", 10_000, abort),
    Case("unusable", "partitions with a lingering batch each, of a producer that is fenced", 10_000, unusable),
    Case("first-metadata", "partitions of a topic in its first metadata", 100_000, first_metadata),
    Case("metadata-again", "partitions of a topic whose metadata comes again, unchanged", 100_000, metadata_again),
    Case("moved", "partitions of a topic, all with other leaders", 100_000, moved),
    Case("created-anew", "partitions of a topic that becomes another one, with one partition", 100_000, created_anew),
    Case("many-ask", "callers of `partitions_for` that wait for the metadata of one topic", 20_000, many_ask),
    Case("forbidden", "tasks that await `send` to a topic that they may not write to", 20_000, forbidden),
    Case("lost", "batches in the requests of a connection that ends", 1000, lost),
    Case("first-topics", "topics in their first metadata, each with a record that waits for it", 10_000, first_topics),
    Case("topics-again", "topics whose metadata comes again, unchanged", 10_000, topics_again),
    Case("idle-topics", "topics that are forgotten (`metadata.max.idle.ms`)", 10_000, idle_topics),
    Case("hostile-metadata", "bytes of metadata, all empty partitions", 8 << 20, hostile_metadata),
    Case("zeros", "bytes of zeros as the first answer", 95_000_000, zeros),
    Case("zeros-of-metadata", "bytes of zeros as metadata", 95_000_000, zeros_of_metadata),
    Case("split", "records of one batch that is too large", 100_000, split),
    Case("splits", "batches of 1000 records, each too large, in one request", 200, splits),
    Case("refusals", "batches of 100 records, each too large, 200 in a request", 10_000, refusals),
)
