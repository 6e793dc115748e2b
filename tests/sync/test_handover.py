"""Records on their way from threads to the loop; here without a thread, so that every moment can be looked at."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import IllegalStateException, KafkaError
from aioproducer.producer.parking.parked_record import PARKED_COST
from aioproducer.producer.producer import core_of
from aioproducer.sync import Delivery
from aioproducer.sync.handover import LARGE, Handover
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import make_producer

pytestmark = pytest.mark.usefixtures("no_leaks")


class CountingLoop:
    """The loop as a handover sees it; counts how often it is called from outside."""

    def __init__(self) -> None:
        self.rings = 0
        self.interrupted = False
        """A signal comes amid the next call."""
        self._loop = asyncio.get_running_loop()

    def call_soon_threadsafe(self, callback: Callable[..., object], *arguments: Any) -> Any:
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt
        self.rings += 1
        return self._loop.call_soon_threadsafe(callback, *arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


class Parts:
    def __init__(self, producer: KafkaProducer, loop: CountingLoop) -> None:
        self.producer = producer
        self.loop = loop
        self.handover = Handover(producer, loop)  # type: ignore[arg-type]

    def send(self, value: bytes, topic: str = "t") -> Delivery:
        """What a thread does."""
        delivery = Delivery(self.handover)
        self.handover.queue.append((delivery, (topic, value, None, None, None, None)))
        if not self.handover.rung:
            self.handover.ring()
        return delivery


@pytest.fixture
async def parts() -> AsyncIterator[Parts]:
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, buffer_memory=10_000, batch_size=1000) as producer:
            _ = await producer.partitions_for("t")
            yield Parts(producer, CountingLoop())


async def test_a_burst_rings_once(parts: Parts) -> None:
    deliveries = [parts.send(b"%d" % number) for number in range(100)]
    assert parts.loop.rings == 1
    assert not any(delivery.done() for delivery in deliveries)
    await asyncio.sleep(0)  # the loop looks
    await parts.producer.flush()
    assert [delivery.result().offset for delivery in deliveries] == list(range(100))
    parts.send(b"another burst")
    assert parts.loop.rings == 2
    await asyncio.sleep(0)


async def test_a_signal_amid_a_ring_leaves_nothing_behind(parts: Parts) -> None:
    parts.loop.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        parts.send(b"1")
    second = parts.send(b"2")
    await asyncio.sleep(0)
    await parts.producer.flush()
    assert second.result().offset == 1  # and the first has come, too


async def test_no_transaction_is_committed_without_what_was_refused(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing: list[KafkaError] = []
    monkeypatch.setattr(core_of(parts.producer).admission, "missing", missing.append)
    refused = parts.send(b"v", topic="")
    await asyncio.sleep(0)
    assert str(refused.exception()) == str(missing[0]) == "the topic is empty"


async def test_threads_wait_while_records_wait_for_memory(parts: Parts) -> None:
    handover = parts.handover
    deliveries = [parts.send(bytes(900)) for _ in range(12)]
    handover.take()
    assert handover.full
    assert not handover._has_room()
    await parts.producer.flush()
    await asyncio.sleep(0)
    assert not handover.full
    assert handover._has_room()
    assert [delivery.exception() for delivery in deliveries] == [None] * 12


async def test_records_on_their_way_fit_into_the_parking_lot() -> None:
    for parked_memory, most in ((4 << 20, 1000), (10 * (LARGE + PARKED_COST), 10), (1, 1)):
        producer = make_producer("h:1", parked_memory=parked_memory)
        assert Handover(producer, asyncio.get_running_loop()).most == most


async def test_a_record_that_comes_after_the_end_is_refused(parts: Parts) -> None:
    handover = parts.handover
    early = parts.send(b"in the queue when the loop ends")
    handover.end()
    late = parts.send(b"after that")
    assert handover._has_room()  # nobody is kept waiting
    for delivery in (early, late):
        with pytest.raises(IllegalStateException, match="closed"):
            delivery.result()
        assert repr(delivery).startswith("<Delivery refused")
    assert parts.loop.rings == 1
    called: list[Delivery] = []
    late.add_done_callback(called.append)
    assert called == [late]


async def test_a_waiting_thread_is_woken_when_the_loop_ends(parts: Parts) -> None:
    """The loop was woken, and ended before it could read."""
    handover = parts.handover
    delivery = parts.send(b"v")
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            delivery.result(30)
        except IllegalStateException as error:
            ended.append(error)

    handover.thread = 0  # it is another one that waits
    thread = threading.Thread(target=wait)
    thread.start()
    while not handover.waiters:
        pass
    handover.end()
    thread.join()
    assert len(ended) == 1
