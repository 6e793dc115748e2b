from __future__ import annotations

import asyncio
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer import KafkaProducer, RecordMetadata
from aioproducer.producer.batches.buffer_pool import BufferPool
from aioproducer.producer.batches.join import AGE, join, joinable
from aioproducer.producer.batches.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import FORWARDED
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.network import Network, NetworkFaults
from aioproducer.testing.simulation.trace import Trace
from tests.producer.simulations.standing_loop import NOW_MS, Loop, make_batch, waiting
from tests.support.producing import all_memory_free
from tests.support.scripted_broker import ScriptedCluster

data = st.none() | st.binary(max_size=300)
headers = st.none() | st.lists(st.tuples(st.text(max_size=5), data), max_size=3)
lasting = st.integers(0, 2**62) | st.integers(NOW_MS - 9000, NOW_MS + 9000)
records = st.lists(st.tuples(lasting, data, data, headers), min_size=1, max_size=20)
several = st.lists(records | st.just([(5, None, b"", None)] * 300), min_size=2, max_size=5)


def closed(some: list[Any], loop: Loop | None = None) -> ProducerBatch:
    batch = make_batch(Loop() if loop is None else loop, created=5.0)
    batch.base_timestamp = batch.max_timestamp = some[0][0]
    for record in some:
        _ = batch.append(*record)
    batch.freeze()
    return batch


def of_size(size: int) -> ProducerBatch:
    """A closed batch of one record whose value has so many bytes."""
    return closed([(NOW_MS, None, bytes(size), None)])


# The rule


@given(several=several)
def test_what_is_joined_has_no_more_bytes_than_allowed(several: list[list[Any]]) -> None:
    waiting = [closed(some) for some in several]
    ample = sum(batch.size() for batch in waiting) + 20 * sum(batch.count for batch in waiting)
    for most in range(0, ample, ample // 10):
        parts = joinable(waiting, most)
        assert parts == waiting[: len(parts)]
        if len(parts) > 1:
            whole = join([closed(some) for some in several[: len(parts)]], BufferPool(0, 0))
            assert whole.size() + BATCH_OVERHEAD <= most
    assert joinable(waiting, NO_LIMIT) == waiting


def test_nearly_all_of_the_room_is_used() -> None:
    waiting = [of_size(1000) for _ in range(20)]
    assert len(joinable(waiting, 9000)) == 8


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize(
    ("name", "value"), [("drain_order", 7), ("compressing", True), ("body", b"compressed"), ("created", 5.1 + AGE)]
)
def test_some_batches_stay_as_they_are(name: str, value: Any, place: int) -> None:
    """Those that were sent, those of a worker thread, and those so much younger that they would expire early."""
    waiting = [of_size(100) for _ in range(4)]
    setattr(waiting[place], name, value)
    if name == "created":
        for batch in waiting[place:]:
            batch.created = value
        assert joinable(waiting, NO_LIMIT) == waiting[: place or 4]
    else:
        assert joinable(waiting, NO_LIMIT) == waiting[:place]


# The whole


@given(several=several)
def test_the_whole_is_byte_for_byte_what_its_records_would_be_as_new_ones(several: list[list[Any]]) -> None:
    parts = [closed(some) for some in several]
    parts[0].ready_at, parts[1].ready_at = 6.0, 5.5
    for part in parts:
        part.allocated = 1000
    whole, expected = join(list(parts), BufferPool(0, 0)), closed([record for some in several for record in some])
    assert (whole.records, whole.sizes) == (expected.records, expected.sizes)
    assert (whole.count, whole.written, whole.size()) == (expected.count, expected.written, expected.size())
    assert (whole.base_timestamp, whole.max_timestamp) == (expected.base_timestamp, expected.max_timestamp)
    assert (whole.created, whole.ready_at, whole.drain_order, whole.attempts) == (5.0, 6.0, -1, 0)
    assert whole.allocated == 1000 * len(parts)
    assert [(part.allocated, part.records) for part in parts] == [(0, b"")] * len(parts)


def _note(called: list[int], place: int, _: object) -> None:
    called.append(place)


def test_deliveries_follow_with_their_waiters_and_callbacks() -> None:
    loop = Loop()
    parts = [closed([(NOW_MS + 10 * part + n, None, bytes(n), None) for n in range(3)], loop) for part in range(3)]
    deliveries = [Delivery(part.result, index) for part in parts for index in range(3)]
    future = waiting(deliveries[7])
    called: list[int] = []
    for place in (8, 0, 4):
        deliveries[place].add_done_callback(partial(_note, called, place))
    parts[1].result.intercept(1, (("h", b"v"),))
    kept = parts[1].result.kept
    whole = join(parts, BufferPool(0, 0))
    assert {part.result.state for part in parts} == {FORWARDED}
    assert whole.result.kept == kept
    assert whole.result.number_waiting() == 1
    assert whole.succeed(50, -1)
    loop.run()
    assert called == [0, 4, 8]
    assert [delivery.result().offset for delivery in deliveries] == list(range(50, 59))
    assert [delivery.result().serialized_value_size for delivery in deliveries] == [0, 1, 2] * 3
    metadata: RecordMetadata = future.result()
    assert (metadata.offset, metadata.timestamp_ms) == (57, NOW_MS + 21)


def test_its_buffer_is_a_recycled_one_and_is_recycled() -> None:
    pool = BufferPool(0, 10_000)
    buffer = pool.buffer()
    pool.recycle(buffer)
    _ = join([of_size(100), of_size(100)], pool)
    assert pool.buffer() is buffer


# End to end

MODES: list[tuple[dict[str, Any], int]] = [
    ({}, 262_144),
    ({"acks": "1", "enable_idempotence": False}, 16_384),  # nothing is joined
    ({"compression_type": "lz4"}, 262_144),
    ({"compression_type": "gzip", "compression_thread_bytes": 40_000}, 40_000),
]


@pytest.mark.parametrize(("mode", "most"), MODES)
def test_what_waits_for_the_first_answer_is_sent_in_larger_batches(mode: dict[str, Any], most: int) -> None:
    async def run() -> None:
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 2)
            async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **mode) as producer:
                values = [Random(number).randbytes(400 + number % 7) for number in range(6000)]
                deliveries = [
                    await producer.enqueue("t", value, partition=number % 2) for number, value in enumerate(values)
                ]
                await producer.flush()
                assert 0.75 * most < producer.metrics()["batch-size-max"] <= most
                for partition in range(2):
                    offsets = [delivery.result().offset for delivery in deliveries[partition::2]]
                    assert offsets == list(range(3000))
                    log = [record.value for record in cluster.log("t", partition).records()]
                    assert log == values[partition::2]
                assert all_memory_free(producer)

    line = Network(Random(0), Conditions(latency=0.05, window=1 << 20), NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), line)) as runner:
        runner.run(run())
