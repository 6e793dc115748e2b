"""A producer that has ended, and what it refers to, is freed.

The garbage collector does not look into deliveries, results, batches and queues, so none of them may refer to what
leads back to its holder (``producer/delivery/audience.py``).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from aioproducer import KafkaProducer, ProducerInterceptor, wait_all
from aioproducer.compat.aiokafka import AIOKafkaProducer
from aioproducer.errors import KafkaError
from aioproducer.protocol.api_key import ApiKey
from aioproducer.sync import KafkaProducer as SyncProducer
from aioproducer.testing import ThreadedCluster
from tests.support.inside import sender_of
from tests.support.scripted_broker import ScriptedCluster, never
from tests.support.transactional import a_cluster

ENDS = ("closed", "closed by force", "failed", "crashed", "abandoned", "loop closed")
WAITS = ("delivered", "lingering", "under way", "awaited", "called back", "flushed", "parked", "in bulk", "gathered")


class Service(ProducerInterceptor):
    """Has a producer, which calls it, and keeps its deliveries: cycles, as in many programs."""

    def __init__(self, **config: Any) -> None:
        self.acknowledged = 0
        self.deliveries: list[Any] = []
        self.producer = KafkaProducer(
            value_serializer=self._serialize, interceptor_classes=[self], max_block_ms=120_000, **config
        )

    def _serialize(self, value: str) -> bytes:
        return value.encode()

    def on_acknowledgement(self, metadata: Any, error: Any, headers: Any) -> None:
        self.acknowledged += 1

    def send(self, topic: str = "t") -> Any:
        self.deliveries.append(self.producer.send(topic, "v"))
        return self.deliveries[-1]

    def called(self, delivery: Any) -> None:
        self.deliveries.append(delivery)

    async def bug(self) -> None:
        raise RuntimeError("a bug")

    async def wait(self, what: Callable[[], Awaitable[Any]]) -> None:
        await what()


async def use(waits: str, end: str) -> weakref.ref[Service]:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        service = Service(
            bootstrap_servers=cluster.bootstrap_servers,
            linger_ms=0 if waits in ("delivered", "under way") else 60_000,
            delivery_timeout_ms=120_000,
        )
        producer = service.producer
        await producer.start()
        _ = await producer.partitions_for("t")
        if waits != "delivered":
            cluster.broker.always(ApiKey.PRODUCE, never())
        delivery = service.send("unknown" if waits == "parked" else "t")
        waiting: dict[str, Callable[[], Awaitable[Any]]] = {
            "awaited": lambda: delivery,
            "flushed": service.producer.flush,
            "in bulk": lambda: service.producer.send_many("t", ["v"] * 10),
            "gathered": lambda: wait_all([delivery]),
        }
        if waits == "under way":
            await cluster.broker.received(ApiKey.PRODUCE)
        elif waits == "delivered":
            _ = await delivery
        elif waits == "called back":
            delivery.add_done_callback(service.called)
        elif waits in waiting:
            task = asyncio.create_task(service.wait(waiting[waits]))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            del task
        if end in ("closed", "closed by force"):
            await producer.close(10 if waits in ("delivered", "lingering") and end == "closed" else 0)
        elif end == "failed":
            sender_of(producer).crashed(KafkaError("a bug"))
            await producer.close()
        elif end == "crashed":
            bug = asyncio.create_task(service.bug())
            _ = await asyncio.wait([bug])
            sender_of(producer).crashed(cast(Exception, bug.exception()))
            del bug
            await producer.close()
    return weakref.ref(service)


def run(main: Any, end: str) -> Any:
    """With ``loop closed``, the loop ends without cancelling any task."""
    if end != "loop closed":
        return asyncio.run(main)
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()


def assert_freed(found: weakref.ref[Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    for _ in range(3):  # what one run has freed may have been the last to hold others
        gc.collect()
    assert found() is None


@pytest.fixture(autouse=True)
def unlogged(caplog: pytest.LogCaptureFixture) -> None:
    """The errors are expected, and their records would keep them."""
    caplog.set_level(logging.CRITICAL + 1)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("waits", WAITS)
@pytest.mark.filterwarnings("ignore")  # sockets of a loop that was closed under its tasks
def test_a_producer_that_has_ended_is_freed(waits: str, end: str, caplog: pytest.LogCaptureFixture) -> None:
    assert_freed(run(use(waits, end), end), caplog)


@pytest.mark.parametrize("end", ["abandoned", "loop closed"])
@pytest.mark.filterwarnings("ignore")
def test_a_transactional_producer_that_is_abandoned_is_freed(end: str, caplog: pytest.LogCaptureFixture) -> None:
    async def use() -> weakref.ref[Service]:
        async with a_cluster() as cluster:
            service = Service(bootstrap_servers=cluster.bootstrap_servers, transactional_id="tx", linger_ms=60_000)
            await service.producer.start()
            await service.producer.init_transactions()
            await service.producer.begin_transaction()
            _ = await service.producer.partitions_for("t")
            service.send().add_done_callback(service.called)
            task = asyncio.create_task(service.wait(service.producer.commit_transaction))
            await asyncio.sleep(0)
            del task
        return weakref.ref(service)

    assert_freed(run(use(), end), caplog)


@pytest.mark.parametrize("end", ["abandoned", "loop closed"])
@pytest.mark.filterwarnings("ignore")
def test_a_producer_of_the_compatible_class_that_is_abandoned_is_freed(
    end: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Program:
        def __init__(self, servers: str) -> None:
            self.producer = AIOKafkaProducer(bootstrap_servers=servers, value_serializer=self.serialize, linger_ms=9000)
            self.futures: list[Any] = []

        def serialize(self, value: str) -> bytes:
            return value.encode()

        def seen(self, future: Any) -> None:
            self.futures.append(future)

    async def use() -> weakref.ref[Program]:
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 1)
            program = Program(cluster.bootstrap_servers)
            await program.producer.start()
            program.futures += [await program.producer.send("t", "v") for _ in range(3)]
            program.futures[1].add_done_callback(program.seen)
        return weakref.ref(program)

    assert_freed(run(use(), end), caplog)


def test_a_producer_for_threads_that_is_closed_is_freed(caplog: pytest.LogCaptureFixture) -> None:
    class Program:
        def __init__(self, servers: str) -> None:
            self.producer = SyncProducer(bootstrap_servers=servers, value_serializer=self.serialize)
            self.deliveries: list[Any] = []

        def serialize(self, value: str) -> bytes:
            return value.encode()

    with ThreadedCluster() as cluster:
        program = Program(cluster.bootstrap_servers)
        program.deliveries += [program.producer.send("t", "v") for _ in range(3)]
        program.deliveries[0].add_done_callback(program.deliveries.append)
        assert program.deliveries[1].result(10).offset >= 0
        program.producer.close()
        freed = weakref.ref(program)
        del program
    assert_freed(freed, caplog)
