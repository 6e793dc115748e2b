"""The results of ``send`` and ``enqueue``, and the time at which their errors are raised."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import pytest

from aioproducer import Delivery, KafkaProducer
from aioproducer.errors import IllegalArgumentException, RecordTooLargeException, TimeoutException
from tests.support.scripted_broker import ScriptedCluster
from tests.support.virtual_time import World, virtual


@virtual
async def test_enqueue_gives_a_coroutine_that_has_done_its_work(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.partitions_for("t")
            first, second = producer.enqueue("t", b"1"), producer.enqueue("t", b"2")
            assert isinstance(first, Coroutine)
            assert asyncio.iscoroutine(first)
            later = await asyncio.create_task(second)
            earlier = await first
            assert isinstance(earlier, Delivery)
            assert [(await delivery).offset for delivery in (earlier, later)] == [0, 1]


@virtual
async def test_an_invalid_record_is_raised_where_enqueue_is_awaited(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.partitions_for("t")
            too_large, no_topic = producer.enqueue("t", bytes(2 << 20)), producer.enqueue("", b"v")
            with pytest.raises(RecordTooLargeException):
                _ = await too_large
            with pytest.raises(IllegalArgumentException):
                _ = await no_topic


@virtual
async def test_a_task_cancelled_before_it_began_leaves_no_record_that_had_to_wait(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            unknown = asyncio.create_task(producer.enqueue("t", b"v"))
            unknown.cancel()
            with pytest.raises(asyncio.CancelledError):
                _ = await unknown
            assert (await producer.send("t", b"next")).offset == 0
            assert producer.metrics()["parked-records"] == 0


NEVER_AWAITED = "^coroutine 'KafkaProducer.enqueue' was never awaited$"


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("hooked", [False, True])
@virtual
async def test_a_record_whose_enqueue_is_forgotten_is_sent_in_its_turn(
    world: World, *, warm: bool, hooked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    config: dict[str, Any] = {"value_serializer": lambda value: value} if hooked else {}
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
            if warm:
                _ = await producer.partitions_for("t")
            first, second = producer.send("t", b"1"), producer.enqueue("t", b"2")
            with pytest.warns(RuntimeWarning, match=NEVER_AWAITED):
                producer.enqueue("t", b"3")  # type: ignore[unused-coroutine]
            _ = producer.send("t", b"4")
            assert (await (await second)).offset == 1
            assert (await first).offset == 0
        assert cluster.values("t") == [b"1", b"2", b"3", b"4"]
    assert caplog.messages == []


@virtual
async def test_a_record_whose_enqueue_is_forgotten_is_logged_if_it_fails(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with ScriptedCluster() as cluster:
        servers = cluster.bootstrap_servers
    async with KafkaProducer(bootstrap_servers=servers, max_block_ms=1000) as producer:
        late = producer.enqueue("late", b"v")
        for topic, value in (("t", b"v"), ("large", bytes(2 << 20)), ("text", "v")):
            with pytest.warns(RuntimeWarning, match=NEVER_AWAITED):
                producer.enqueue(topic, value)  # type: ignore[arg-type, unused-coroutine]
        with pytest.warns(RuntimeWarning, match=NEVER_AWAITED):
            producer.enqueue(7)  # type: ignore[call-overload]
        await asyncio.sleep(2)
        assert producer.metrics()["record-error-total"] == 4
        with pytest.raises(TimeoutException):
            _ = await late  # it was waiting from the call on
        forgotten = [producer.enqueue("forgotten later", b"v")]
        await asyncio.sleep(2)
        with pytest.warns(RuntimeWarning, match=NEVER_AWAITED):
            forgotten.clear()
        await asyncio.sleep(0)
    failed = [vars(record)["kafka"] for record in caplog.records if record.name.endswith("failure_log")]
    assert sorted((fields["topic"], fields["records"], fields["error"]) for fields in failed) == [
        ("forgotten later", 1, "TimeoutException"),
        ("large", 1, "RecordTooLargeException"),
        ("t", 1, "TimeoutException"),
        ("text", 1, "SerializationException"),
    ]


@virtual
async def test_forgotten_records_have_no_more_memory_than_parked_ones(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, parked_memory=10_000) as producer:
            for _ in range(10):
                with pytest.warns(RuntimeWarning, match=NEVER_AWAITED):
                    producer.enqueue("t", bytes(1000))  # type: ignore[unused-coroutine]
            await asyncio.sleep(0)
        assert 0 < len(cluster.values("t")) < 7
    (line,) = caplog.messages
    assert "await send() or enqueue()" in line
    assert vars(caplog.records[0])["kafka"]["records"] + len(cluster.values("t")) == 10


@pytest.mark.parametrize("warm", [False, True])
async def test_another_thread_may_have_the_loop_run_it(*, warm: bool) -> None:
    loop, results = asyncio.get_running_loop(), list[Delivery]()
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            if warm:
                _ = await producer.partitions_for("t")

            def enqueue() -> None:
                results.append(asyncio.run_coroutine_threadsafe(producer.enqueue("t", b"v"), loop).result())

            await asyncio.to_thread(enqueue)
            assert (await results[0]).offset == 0
