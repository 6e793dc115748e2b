"""Units of work against the embedded broker: whole, once, in order, or not at all."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer import (
    ConsumerGroupMetadata,
    DeliveryError,
    KafkaProducer,
    Outcome,
    ProducerInterceptor,
    TopicPartition,
    Unit,
)
from aioproducer.errors import (
    BufferExhaustedException,
    IllegalArgumentException,
    IllegalGenerationException,
    IllegalStateException,
    InvalidTxnStateException,
    KafkaError,
    ProducerFencedException,
    RecordTooLargeException,
    SerializationException,
    TimeoutException,
    UnitTooLargeException,
)
from aioproducer.producer.producer import core_of
from aioproducer.producer.sender.sender import Sender
from aioproducer.protocol.api_key import ApiKey
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free, make_producer
from tests.support.scripted_broker import Held, ScriptedCluster
from tests.support.transactional import PROTOCOLS, a_cluster, all_stable, committed
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(30)]

NO_NEW_TOPICS = {"auto.create.topics.enable": False}


@asynccontextmanager
async def using(cluster: ScriptedCluster, **config: Any) -> AsyncIterator[KafkaProducer[Any, Any]]:
    async with make_producer(cluster.bootstrap_servers, transactional_id="x", **config) as producer:
        await producer.init_transactions()
        yield producer
    assert all_memory_free(producer)
    assert producer.metrics()["unit-held-bytes"] == 0


async def write(producer: KafkaProducer, *values: bytes, topic: str = "t") -> Unit[Any, Any]:
    async with producer.unit() as unit:
        for value in values:
            await unit.send(topic, value, partition=0)
    return unit


async def turns() -> None:
    """Enough turns of the loop for a unit to be put into a transaction."""
    for _ in range(20):
        await asyncio.sleep(0)


@PROTOCOLS
async def test_units_that_end_together_share_a_commit(protocol: int) -> None:
    async with a_cluster(protocol) as cluster, using(cluster) as producer:
        units = await asyncio.gather(*(write(producer, b"%d a" % i, b"%d b" % i) for i in range(100)))
        assert committed(cluster) == [b"%d %s" % (i, part) for i in range(100) for part in (b"a", b"b")]
        assert [unit.result()[0].offset for unit in units[:3]] == [0, 2, 4]
        assert all(unit.committed and unit.done() and unit.outcome is None for unit in units)
        metrics = producer.metrics()
        assert metrics["unit-committed-total"] == 100
        assert metrics["unit-commit-total"] < 10
        assert metrics["units-per-commit-max"] > 10
        assert (metrics["units-open"], metrics["units-waiting"], metrics["unit-error-total"]) == (0, 0, 0)


async def test_a_block_that_raises_takes_only_its_own_unit_out() -> None:
    async with a_cluster() as cluster, using(cluster) as producer:

        async def fail() -> None:
            async with producer.unit() as unit:
                units.append(unit)
                await unit.send("t", b"never", partition=0)
                raise ZeroDivisionError

        units: list[Unit[Any, Any]] = []
        failed, _ = await asyncio.gather(fail(), write(producer, b"there"), return_exceptions=True)
        assert isinstance(failed, ZeroDivisionError)
        assert committed(cluster) == [b"there"]
        assert cluster.values("t") == [b"there"], "nothing was sent"
        assert units[0].outcome is Outcome.NOT_SENT
        assert not units[0].committed
        with pytest.raises(DeliveryError, match="its block raised ZeroDivisionError"):
            units[0].result()


async def test_offsets_are_part_of_the_unit_and_sent_together() -> None:
    async with a_cluster() as cluster, using(cluster) as producer:

        async def consume(offset: int) -> None:
            async with producer.unit() as unit:
                await unit.send("t", b"%d" % offset, partition=0)
                await unit.send_offsets({TopicPartition("t", 1): offset + 1}, "group")

        await asyncio.gather(*(consume(offset) for offset in range(20)))
        assert cluster.committed_offsets("group") == {TopicPartition("t", 1): 20}


@PROTOCOLS
async def test_a_poisoned_unit_fails_alone_with_its_own_error(protocol: int) -> None:
    async with a_cluster(protocol) as cluster, using(cluster) as producer:
        cluster.create_topic("small", 1, configs={"max.message.bytes": 500})
        values = [b"%d" % i if i != 7 else b"x" * 600 for i in range(20)]
        results = await asyncio.gather(*(write(producer, one, topic="small") for one in values), return_exceptions=True)
        failed = results.pop(7)
        assert isinstance(failed, RecordTooLargeException)
        assert isinstance(failed, DeliveryError)
        assert failed.outcome is Outcome.NOT_SENT
        assert not any(isinstance(result, BaseException) for result in results)
        assert committed(cluster, "small") == values[:7] + values[8:], "in the order of the ends of the blocks"
        assert producer.metrics()["unit-abort-total"] >= 1
        assert all_stable(cluster)


async def test_offsets_of_a_member_that_has_left_fail_their_units_alone() -> None:
    async with a_cluster() as cluster, using(cluster) as producer:

        async def consume(group: ConsumerGroupMetadata) -> None:
            async with producer.unit() as unit:
                await unit.send("t", group.group_id.encode(), partition=0)
                await unit.send_offsets({TopicPartition("t", 1): 1}, group)

        gone = ConsumerGroupMetadata("g", 5, "somebody")
        results = await asyncio.gather(
            consume(gone), consume(ConsumerGroupMetadata("other")), consume(gone), return_exceptions=True
        )
        assert [type(result) for result in results[::2]] == [type(results[0])] * 2
        assert isinstance(results[0], IllegalGenerationException)
        assert isinstance(results[0], DeliveryError)
        assert results[0].outcome is Outcome.NOT_SENT
        assert results[1] is None
        assert committed(cluster) == [b"other"]
        assert producer.metrics()["unit-abort-total"] == 1, "nothing that would be refused again is tried"


@virtual
async def test_offsets_of_a_topic_that_does_not_exist_fail_their_unit_alone(world: World) -> None:
    """Coordinators answer that the request may be repeated, so it would hold up all other units for ever."""
    async with a_cluster() as cluster, using(cluster, max_block_ms=300) as producer:

        async def consume() -> None:
            async with producer.unit() as unit:
                await unit.send("t", b"never", partition=0)
                await unit.send_offsets({TopicPartition("nowhere", 0): 1}, "g")

        failed, written = await asyncio.gather(consume(), write(producer, b"there"), return_exceptions=True)
        assert isinstance(failed, TimeoutException)
        assert isinstance(failed, DeliveryError)
        assert failed.outcome is Outcome.NOT_SENT
        assert isinstance(written, Unit)
        await write(producer, b"later")
        assert committed(cluster) == [b"there", b"later"]


@virtual
@PROTOCOLS
async def test_a_record_for_a_topic_that_was_deleted_fails_its_unit_alone(world: World, protocol: int) -> None:
    """Its record uses up delivery.timeout.ms, but not the time of other units, in the transaction or behind it."""
    times = {"max_block_ms": 3000, "delivery_timeout_ms": 6000, "request_timeout_ms": 2000}
    async with a_cluster(protocol, configs=NO_NEW_TOPICS) as cluster, using(cluster, **times) as producer:
        cluster.create_topic("gone", 1)
        await write(producer, b"before", topic="gone")
        cluster.delete_topic("gone")

        async def one(number: int) -> None:
            await asyncio.sleep(0 if number < 10 else number / 10)
            async with producer.unit() as unit:
                await unit.send("t", b"%d" % number, partition=0)
                if number in (3, 6):
                    await unit.send("gone", b"never", partition=0)

        results = await asyncio.gather(*(one(number) for number in range(20)), return_exceptions=True)
        failed = {number: result for number, result in enumerate(results) if result is not None}
        assert list(failed) == [3, 6]
        for error in failed.values():
            assert isinstance(error, TimeoutException)
            assert isinstance(error, DeliveryError)
            assert (error.outcome, error.topic_partition) == (Outcome.NOT_SENT, ("gone", 0))
        assert committed(cluster) == [b"%d" % number for number in range(20) if number not in failed]


@virtual
async def test_poison_after_poison_does_not_use_up_the_time_of_other_units(world: World) -> None:
    times = {"max_block_ms": 1000, "delivery_timeout_ms": 3000, "request_timeout_ms": 1000}
    async with a_cluster() as cluster, using(cluster, **times) as producer:

        async def consume(number: int) -> None:
            async with producer.unit() as unit:
                await unit.send("t", b"%d" % number, partition=0)
                topic = "nowhere" if number in (3, 6, 9) else "t"
                await unit.send_offsets({TopicPartition(topic, 0): 1}, "g")

        results = await asyncio.gather(*(consume(number) for number in range(12)), return_exceptions=True)
        assert [number for number, result in enumerate(results) if result is not None] == [3, 6, 9]
        assert committed(cluster) == [b"%d" % number for number in range(12) if number not in (3, 6, 9)]


async def test_a_fenced_producer_fails_all_units_with_the_truth() -> None:
    async with a_cluster() as cluster, using(cluster) as producer:
        await write(producer, b"first")
        async with make_producer(cluster.bootstrap_servers, transactional_id="x") as newer:
            await newer.init_transactions()
            results = await asyncio.gather(*(write(producer, b"late") for _ in range(5)), return_exceptions=True)
            assert all(isinstance(result, ProducerFencedException) for result in results), results
            assert all(isinstance(one, DeliveryError) and one.outcome is Outcome.NOT_SENT for one in results)
            with pytest.raises(ProducerFencedException):
                await write(producer, b"later still")
        assert committed(cluster) == [b"first"]


async def test_a_unit_that_ends_after_the_producer_has_failed_names_the_cause() -> None:
    async with a_cluster() as cluster, using(cluster) as producer:
        why = InvalidTxnStateException("the transaction took too long")
        unit, sender = producer.unit(), producer._core.sender
        assert isinstance(sender, Sender)

        async def too_late() -> None:
            async with unit:
                await unit.send("t", b"late", partition=0)
                sender.fail(why)

        with pytest.raises(IllegalStateException, match="has failed: the transaction took too long") as failed:
            await too_late()
        assert failed.value.__cause__ is why
        assert unit.outcome is Outcome.NOT_SENT
        assert committed(cluster) == []


async def test_transactions_by_hand_and_units_exclude_each_other() -> None:
    async with a_cluster() as cluster, using(cluster) as producer:
        async with producer.unit() as unit:
            for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
                with pytest.raises(IllegalStateException, match="while units are in use"):
                    await call()
            with pytest.raises(IllegalStateException, match="while units are in use"):
                await producer.send_offsets_to_transaction({}, "g")
            await unit.send("t", b"1", partition=0)
        async with producer.transaction():
            with pytest.raises(IllegalStateException, match="by hand"):
                await write(producer, b"never")
            _ = producer.send("t", b"2", partition=0)
        await write(producer, b"3")
        assert committed(cluster) == [b"1", b"2", b"3"]


async def test_a_record_outside_units_cannot_slip_into_their_transaction() -> None:
    async with a_cluster() as cluster, using(cluster, transaction_group_window_ms=100) as producer:
        writing = asyncio.create_task(write(producer, b"in"))
        await turns()
        with pytest.raises(IllegalStateException, match=r"use unit\.send\(\)"):
            _ = producer.send("t", b"out", partition=0)
        await writing
        assert committed(cluster) == [b"in"]


async def test_a_unit_needs_an_initialized_transactional_producer() -> None:
    async with a_cluster() as cluster:
        async with make_producer(cluster.bootstrap_servers) as producer:
            with pytest.raises(IllegalStateException, match=r"unit\(\) needs a transactional\.id"):
                producer.unit()
        async with make_producer(cluster.bootstrap_servers, transactional_id="x") as producer:
            with pytest.raises(IllegalStateException, match=r"init_transactions\(\) was not called"):
                await write(producer, b"never")


async def test_misuse_of_a_unit_is_refused() -> None:
    async with a_cluster() as cluster, using(cluster) as producer:
        unit = await write(producer, b"1")
        with pytest.raises(IllegalStateException, match="the unit's block is over"):
            await unit.send("t", b"2")
        with pytest.raises(IllegalStateException, match="a unit has one block"):
            async with unit:
                raise AssertionError
        async with producer.unit() as unit:
            with pytest.raises(IllegalArgumentException, match="partition is -1"):
                await unit.send("t", b"3", partition=-1)
            with pytest.raises(SerializationException, match="must be bytes"):
                await unit.send("t", "text")
            with pytest.raises(IllegalArgumentException, match="the offset of t-0 is -1"):
                await unit.send_offsets({TopicPartition("t", 0): -1}, "g")
            with pytest.raises(IllegalStateException, match="block is not over"):
                await unit.wait()
        assert unit.committed
        assert unit.result() == []
        assert committed(cluster) == [b"1"]


async def test_a_unit_without_a_block_takes_nothing() -> None:
    async with a_cluster() as cluster, using(cluster) as producer:
        unit = producer.unit()
        with pytest.raises(IllegalStateException, match="use `async with"):
            await unit.send("t", b"1", partition=0)
        with pytest.raises(IllegalStateException, match="use `async with"):
            await unit.send_offsets({TopicPartition("t", 0): 1}, "g")
        with pytest.raises(IllegalStateException, match="has not begun"):
            await unit.__aexit__(None, None, None)
        await write(producer, b"2")
        done = await write(producer, b"3")
        with pytest.raises(IllegalStateException, match="is over"):
            await done.__aexit__(None, None, None)
        assert committed(cluster) == [b"2", b"3"]


async def test_a_unit_that_no_caller_has_any_more_gives_its_memory_back(caplog: pytest.LogCaptureFixture) -> None:
    async with a_cluster() as cluster, using(cluster) as producer:
        unit = await producer.unit().__aenter__()
        await unit.send("t", b"1", partition=0)
        assert producer.metrics()["unit-held-bytes"] > 0
        del unit
        gc.collect()
        await asyncio.sleep(0)
        assert (producer.metrics()["unit-held-bytes"], producer.metrics()["units-open"]) == (0, 0)
        assert "was entered and never left" in caplog.text
        async with producer.transaction():
            await producer.send("t", b"2", partition=0)
        assert committed(cluster) == [b"2"]


async def test_the_offset_of_the_later_unit_counts_however_the_group_is_named() -> None:
    async with a_cluster() as cluster, using(cluster) as producer:
        by_id, by_name = ConsumerGroupMetadata("g"), ConsumerGroupMetadata("g", group_instance_id="me")

        async def consume(offset: int, group: ConsumerGroupMetadata, partition: int = 1) -> None:
            async with producer.unit() as unit:
                await unit.send_offsets({TopicPartition("t", partition): offset}, group)

        await asyncio.gather(consume(1, by_id), consume(2, by_name), consume(3, by_id), consume(4, by_name, 2))
        assert cluster.committed_offsets("g") == {TopicPartition("t", 1): 3, TopicPartition("t", 2): 4}
        assert producer.metrics()["unit-commit-total"] == 1
        assert cluster.broker.count(ApiKey.TXN_OFFSET_COMMIT) == 3


@virtual
async def test_a_send_that_was_not_awaited_keeps_the_unit_out(world: World) -> None:
    async with a_cluster() as cluster, using(cluster, max_block_ms=500) as producer:
        sending: list[asyncio.Task[None]] = []

        async def left_behind() -> None:
            async with producer.unit() as unit:
                sending.append(asyncio.create_task(unit.send("t", b"1", partition=17)))
                await asyncio.sleep(0)

        with pytest.raises(IllegalStateException, match="has not returned: await it"):
            await left_behind()
        with pytest.raises(TimeoutException, match="partition 17 of topic 't' did not exist"):
            await sending[0]
        assert committed(cluster) == []


@virtual
async def test_a_send_that_was_cancelled_keeps_the_unit_out(world: World) -> None:
    async with a_cluster() as cluster, using(cluster) as producer:
        unit = producer.unit()

        async def without_patience() -> None:
            async with unit:
                await unit.send("t", b"2", partition=0)
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await unit.send("t", b"3", partition=17)

        with pytest.raises(IllegalStateException, match="was cancelled"):
            await without_patience()
        assert unit.outcome is Outcome.NOT_SENT
        assert committed(cluster) == []


async def test_a_unit_that_can_never_fit_is_told_so() -> None:
    async with a_cluster() as cluster, using(cluster, buffer_memory=20_000, batch_size=1000) as producer:
        with pytest.raises(UnitTooLargeException, match="do not fit in buffer"):
            await write(producer, *[b"x" * 5000] * 4)
        await write(producer, *[b"x" * 5000] * 3)
        assert len(committed(cluster)) == 3


async def test_open_units_without_memory_do_not_wait_for_each_other() -> None:
    async with a_cluster() as cluster, using(cluster, buffer_memory=20_000, batch_size=1000) as producer:

        async def slowly(number: int) -> None:
            async with producer.unit() as unit:
                for _ in range(2):
                    await unit.send("t", b"%d" % number + b"x" * 5000, partition=0)
                    await asyncio.sleep(0)

        await asyncio.gather(*(slowly(number) for number in range(20)))
        assert len(committed(cluster)) == 40


@virtual
async def test_a_write_that_waits_for_memory_too_long_fails(world: World) -> None:
    config = {"buffer_memory": 20_000, "batch_size": 1000, "max_block_ms": 100}
    async with a_cluster() as cluster, using(cluster, **config) as producer, producer.unit() as first:
        await first.send("t", b"x" * 15_000, partition=0)
        with pytest.raises(BufferExhaustedException, match=r"within max\.block\.ms=100"):
            await write(producer, b"x" * 10_000)
    assert committed(cluster) == [b"x" * 15_000]


async def test_closing_completes_units_and_refuses_open_ones() -> None:
    async with a_cluster() as cluster:
        producer = make_producer(cluster.bootstrap_servers, transactional_id="x", transaction_group_window_ms=60_000)
        await producer.start()
        await producer.init_transactions()
        ended = asyncio.create_task(write(producer, b"ended"))
        open_one = producer.unit()
        await open_one.__aenter__()
        await open_one.send("t", b"open", partition=0)
        await turns()
        await producer.close()
        assert (await ended).committed
        with pytest.raises(IllegalStateException, match="closed"):
            await open_one.send("t", b"late")
        with pytest.raises(IllegalStateException, match="closed") as refused:
            await open_one.__aexit__(None, None, None)
        assert isinstance(refused.value, DeliveryError)
        assert refused.value.outcome is Outcome.NOT_SENT
        assert committed(cluster) == [b"ended"]


@PROTOCOLS
async def test_a_commit_whose_end_is_unknown_says_so(protocol: int) -> None:
    """The coordinator has the request to commit; the producer is closed before it answers."""
    async with a_cluster(protocol) as cluster:
        producer = make_producer(cluster.bootstrap_servers, transactional_id="x")
        await producer.start()
        await producer.init_transactions()
        held = Held()
        cluster.broker.script(ApiKey.END_TXN, held)
        writing = asyncio.create_task(write(producer, b"perhaps"))
        await cluster.broker.received(ApiKey.END_TXN)
        await producer.close(0)
        with pytest.raises(KafkaError, match="closed before the unit was committed") as failed:
            await writing
        assert isinstance(failed.value, DeliveryError)
        assert failed.value.outcome is Outcome.UNKNOWN
        held.release()


async def test_cancelled_before_it_joins_it_is_taken_out_and_afterwards_it_is_committed() -> None:
    async with a_cluster() as cluster, using(cluster) as producer:
        held = Held()
        cluster.broker.script(ApiKey.END_TXN, held)
        units: list[Unit[Any, Any]] = []

        async def one(value: bytes) -> None:
            async with producer.unit() as unit:
                units.append(unit)
                await unit.send("t", value, partition=0)

        joined = asyncio.create_task(one(b"joined"))
        await cluster.broker.received(ApiKey.END_TXN)
        waiting = asyncio.create_task(one(b"waiting"))
        await asyncio.sleep(0.01)
        for task in (joined, waiting):
            task.cancel()
        for task, note in ((joined, "is being committed"), (waiting, "was taken out")):
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await task
            assert note in cancelled.value.__notes__[0]
        assert [unit.outcome for unit in units] == [None, Outcome.NOT_SENT]
        held.release()
        await units[0].wait()
        assert units[0].committed
        assert committed(cluster) == [b"joined"]


async def test_serializers_interceptors_and_partitioner_see_each_record_once() -> None:
    class Seen(ProducerInterceptor):
        def __init__(self) -> None:
            self.sent: list[Any] = []
            self.ends: list[object] = []

        def on_send(self, record: Any) -> Any:
            self.sent.append(record.value)
            return record

        def on_acknowledgement(self, metadata: Any, error: BaseException | None, headers: Any) -> None:
            self.ends.append(metadata.offset if error is None else type(error).__name__)

    async def later(topic: str, headers: list[tuple[str, bytes | None]], data: str) -> bytes:
        await asyncio.sleep(0)
        if data == "bad":
            raise ValueError(data)
        headers.append(("made", b"later"))
        return data.encode()

    class Later:
        serialize = staticmethod(later)

    seen = Seen()
    config = {
        "interceptor_classes": [seen],
        "value_serializer": Later(),
        "partitioner_class": lambda topic, key, key_bytes, value, value_bytes, partitions: len(value) % 3,
    }
    async with a_cluster() as cluster, using(cluster, **config) as producer:
        cluster.create_topic("small", 3, configs={"max.message.bytes": 500})
        async with producer.unit() as unit:
            await unit.send("t", "abc")
            with pytest.raises(SerializationException, match="bad"):
                await unit.send("t", "bad")
        with pytest.raises(RecordTooLargeException):
            async with producer.unit() as unit:
                await unit.send("small", "x" * 600)
        dropped = producer.unit()
        await dropped.__aenter__()
        await dropped.send("t", "dropped")
        await dropped.__aexit__(ZeroDivisionError, ZeroDivisionError(), None)
        assert committed(cluster) == [b"abc"]
        assert next(iter(cluster.log("t", 0).records())).headers == (("made", b"later"),)
        assert seen.sent == ["abc", "bad", "x" * 600, "dropped"]
        assert seen.ends == [
            "SerializationException",
            0,
            "RecordTooLargeException",
            "TransactionAbortedException",
        ]


async def test_an_empty_unit_costs_nothing() -> None:
    async with a_cluster() as cluster, using(cluster) as producer:
        async with producer.unit() as unit:
            pass
        assert unit.committed
        assert producer.metrics()["unit-commit-total"] == 0


@virtual
async def test_without_a_coordinator_a_unit_ends_in_time(world: World) -> None:
    """A unit that waits fails within delivery.timeout.ms, and nothing of it was sent."""
    async with a_cluster() as cluster:
        config = {"max_block_ms": 1000, "delivery_timeout_ms": 5000, "request_timeout_ms": 1000, "linger_ms": 0}
        async with make_producer(cluster.bootstrap_servers, transactional_id="x", **config) as producer:
            await producer.init_transactions()
            cluster.broker.script(ApiKey.END_TXN, *[Held() for _ in range(200)])
            loop = asyncio.get_running_loop()
            began = loop.time()
            first = asyncio.create_task(write(producer, b"first"))
            await asyncio.sleep(0.5)
            second = asyncio.create_task(write(producer, b"second"))
            with pytest.raises(TimeoutException) as late:
                await second
            assert isinstance(late.value, DeliveryError)
            assert late.value.outcome is Outcome.NOT_SENT
            assert loop.time() - began < 7
            with pytest.raises(TimeoutException) as unknown:
                await first
            assert isinstance(unknown.value, DeliveryError)
            assert unknown.value.outcome is Outcome.UNKNOWN
            assert loop.time() - began < 9
            await producer.close(0)


async def test_the_core_has_units_only_with_a_transactional_id() -> None:
    async with a_cluster() as cluster, make_producer(cluster.bootstrap_servers) as producer:
        assert core_of(producer).units is None
