"""The cost of a record at its start and its end: calls and memory blocks, counted, not timed.

``python -m benchmarks`` measures with a clock. What is counted here is the same on a busy machine.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aioproducer import Delivery, KafkaProducer
from tests.support.compiled import COMPILED
from tests.support.counted_calls import CLIENT, Calls, CallsIn
from tests.support.inside import parts_of
from tests.support.scripted_broker import ScriptedCluster
from tests.support.virtual_time import World, virtual

RECORDS = 2000


@asynccontextmanager
async def producing(**config: Any) -> AsyncIterator[tuple[ScriptedCluster, KafkaProducer]]:
    """All records fit into one batch, which lingers."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        large: dict[str, Any] = {"batch_size": 1 << 20, "linger_ms": 60_000, "delivery_timeout_ms": 120_000}
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **large, **config) as producer:
            _ = await producer.partitions_for("t")
            yield cluster, producer


async def calls_of_send() -> float:
    value, calls = bytes(100), Calls()
    async with producing() as (_, producer):
        send = producer.send
        _ = send("t", value)  # opens the batch
        with calls.counting():
            for _ in range(RECORDS):
                _ = send("t", value)
    return calls.count / RECORDS


async def calls_of_enqueue() -> float:
    value, calls = bytes(100), Calls()
    async with producing() as (_, producer):
        enqueue = producer.enqueue
        _ = await enqueue("t", value)
        with calls.counting():
            for _ in range(RECORDS):
                _ = await enqueue("t", value)
    return calls.count / RECORDS


@virtual
async def test_a_record_is_sent_with_few_calls(world: World) -> None:
    # Compiled: send itself, where it is called; the profiler does not see what is called within.
    assert 0.9 < await calls_of_send() < (1.1 if COMPILED else 38)


@virtual
async def test_a_record_is_enqueued_with_few_calls(world: World) -> None:
    # Interpreted, one more: what is awaited.
    assert 0.9 < await calls_of_enqueue() < (1.1 if COMPILED else 39)


@virtual
async def test_a_record_in_the_accumulator_is_one_block_of_memory(world: World) -> None:
    value = bytes(100)
    async with producing() as (_, producer):
        deliveries: list[Delivery | None] = [None] * RECORDS
        deliveries[0] = producer.send("t", value)
        gc.collect()
        before = sys.getallocatedblocks()
        for number in range(1, RECORDS):
            deliveries[number] = producer.send("t", value)
        blocks = (sys.getallocatedblocks() - before) / RECORDS
    assert 0.5 < blocks < (1.1 if COMPILED else 4.1)  # its Delivery; interpreted, that and what it is made of


@virtual
async def test_the_garbage_collector_has_next_to_nothing_to_visit_for_a_partition_and_its_batch(world: World) -> None:
    """Each full collection visits all that it tracks, on the event loop, and what is tracked makes it run."""
    partitions = 500
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", partitions)
        large: dict[str, Any] = {"linger_ms": 60_000, "delivery_timeout_ms": 120_000}
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **large) as producer:
            before = tracked()
            _ = await producer.partitions_for("t")
            known = tracked()
            deliveries = [producer.send("t", b"v", partition=partition) for partition in range(partitions)]
            open_batches = tracked()
            await producer.flush()
            assert all(delivery.exception() is None for delivery in deliveries)
    # Compiled: its PartitionInfo, a deque and two lists of batches; the batch has none.
    assert 1 < (known - before) / partitions < (5 if COMPILED else 10)
    assert (open_batches - known) / partitions < (0.2 if COMPILED else 15)


def tracked() -> int:
    """The number of objects that the garbage collector visits."""
    gc.collect()
    return len(gc.get_objects())


async def calls_of_the_end(records: int) -> int:
    """From the flush to the last delivery. The loop's and the broker's are not counted."""
    value, calls = bytes(10), CallsIn(*CLIENT)
    async with producing() as (_, producer):
        deliveries = [producer.send("t", value) for _ in range(records)]
        with calls.counting():
            await producer.flush()
        assert all(delivery.done() for delivery in deliveries)
    return calls.count


@virtual
async def test_the_end_of_a_batch_costs_the_same_however_many_records_nobody_awaits(world: World) -> None:
    few = await calls_of_the_end(1)
    many = await calls_of_the_end(1001)
    assert few > 0
    assert (many - few) / 1000 < 0.1


async def calls_of_a_request(requests: int = 200) -> float:
    """From a send to its outcome, one at a time. The loop's and the broker's are not counted."""
    value, calls = bytes(100), CallsIn(*CLIENT)
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=0) as producer:
            for _ in range(10):
                _ = await producer.send("t", value)
            with calls.counting():
                for _ in range(requests):
                    _ = await producer.send("t", value)
    return calls.count / requests


@virtual
async def test_a_request_takes_few_calls_of_python(world: World) -> None:
    # Compiled: the Sender's task goes on.
    assert 0.9 < await calls_of_a_request() < (2 if COMPILED else 224)


@virtual
async def test_a_request_is_two_passes_of_the_sender(world: World) -> None:
    """One when it leaves, also if that is the end of a linger, and one when it is answered."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=5) as producer:
            _ = await producer.send("t", b"v")
            before = parts_of(producer).sender_pass.count
            for _ in range(100):
                _ = await producer.send("t", b"v")
            assert parts_of(producer).sender_pass.count - before <= 202
