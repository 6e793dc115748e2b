"""Serializers that must be awaited, in a whole producer."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aioproducer import (
    BulkResult,
    Delivery,
    KafkaProducer,
    Outcome,
    ProducerInterceptor,
    RecordMetadata,
    wait_all,
)
from aioproducer.errors import (
    BufferExhaustedException,
    IllegalArgumentException,
    IllegalStateException,
    KafkaError,
    PartitionerException,
    RecordTooLargeException,
    SerializationException,
    TimeoutException,
    TransactionAbortableException,
    TransactionAbortedException,
)
from aioproducer.producer.admission.serializer_lane import MOST_LEAVING
from aioproducer.producer.producer import core_of
from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.timing.time_slice import TIME_SLICE
from tests.support.cancelling import How, Strike, everywhere, in_virtual_time
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free, end_of, make_producer, turns
from tests.support.scripted_broker import ScriptedCluster
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(60)]


@asynccontextmanager
async def running(
    serializer: Any, *, known: bool = True, **config: Any
) -> AsyncIterator[tuple[ScriptedCluster, KafkaProducer[Any, Any]]]:
    """A producer with this value serializer that knows the topic ``t``."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, value_serializer=serializer, **config) as producer:
            if known:
                await producer.partitions_for("t")
            yield cluster, producer
            await producer.flush()
            assert len(core_of(producer).lot) == 0
            assert not core_of(producer).lot.serializing.records


class Slow:
    """Takes a number and waits for as many milliseconds, or for ever if it is negative; counts what is at work."""

    def __init__(self) -> None:
        self.at_work = self.most = self.cancelled = 0
        self.begun: list[int] = []

    async def __call__(self, data: int) -> bytes:
        self.begun.append(data)
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        try:
            await (asyncio.sleep(data / 1000) if data >= 0 else asyncio.Event().wait())
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.at_work -= 1
        return b"%d" % data


async def encode(data: str) -> bytes:
    await asyncio.sleep(0.001)
    return data.encode()


class WithTopic:
    async def serialize(self, topic: str, headers: list[tuple[str, bytes | None]], data: str | None) -> bytes | None:
        await asyncio.sleep(0.001)
        headers.append(("topic", topic.encode()))
        return None if data is None else data.encode()


class Cached:
    """Answers the first call for a text by an awaitable, later ones at once."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.look_ups = 0

    def __call__(self, data: str) -> bytes | Awaitable[bytes]:
        return data.encode() if data in self.known else self._look_up(data)

    async def _look_up(self, data: str) -> bytes:
        self.look_ups += 1
        await asyncio.sleep(0.01)
        self.known.add(data)
        return data.encode()


def by_future(data: str) -> Awaitable[bytes]:
    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.001, future.set_result, data.encode())
    return future


def by_task(data: str) -> Awaitable[bytes]:
    return asyncio.create_task(encode(data))


FORMS: dict[str, Any] = {
    "function": encode,
    "partial": functools.partial(encode),
    "object": WithTopic(),
    "class": WithTopic,
    "callable object": Cached(),
    "callable class": Cached,
    "import path": "tests.producer.admission.test_serializer_lane.encode",
    "lambda": lambda data: encode(data),
    "future": by_future,
    "task": by_task,
}


@pytest.mark.parametrize("form", FORMS)
@virtual
async def test_every_form_of_every_call(world: World, form: str) -> None:
    async with running(FORMS[form], key_serializer=FORMS[form]) as (cluster, producer):
        metadata = await producer.send("t", "a", key="k")
        assert (metadata.offset, metadata.serialized_key_size, metadata.serialized_value_size) == (0, 1, 1)
        assert (await (await producer.enqueue("t", "b", key="k"))).offset == 1
        delivery = producer.send("t", "c")
        assert not delivery.done()
        await producer.flush()
        assert delivery.result().offset == 2
        assert (await producer.send_many("t", ["d", None, "e"], keys=["k", "k", None])).delivered == 3
        assert (await producer.send("t")).offset == 6
    assert cluster.values("t") == [b"a", b"b", b"c", b"d", None, b"e", None]


@virtual
async def test_headers_that_it_adds_are_sent(world: World) -> None:
    given: list[tuple[str, bytes | None]] = [("h", None)]
    seen: list[Any] = []

    class Listening(ProducerInterceptor):
        def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None, headers: Any) -> None:
            seen.append(headers)

    async with running(WithTopic, interceptor_classes=[Listening]) as (_, producer):
        delivery = producer.send("t", "v", headers=given)
        given.append(("later", b""))
        await delivery
    assert seen == [(("h", None), ("topic", b"t"))]


# One at a time, in order


async def send(producer: KafkaProducer[Any, Any], value: Any) -> RecordMetadata:
    return await producer.send("t", value)


@virtual
async def test_serializers_work_on_one_record_at_a_time_and_in_the_order_of_the_sends(world: World) -> None:
    slow = Slow()
    async with running(slow) as (cluster, producer):
        await asyncio.gather(*[producer.send("t", number) for number in (9, 3, 7, 1)])
    assert slow.begun == [9, 3, 7, 1]
    assert cluster.values("t") == [b"9", b"3", b"7", b"1"]
    assert slow.most == 1


@virtual
async def test_one_look_up_serves_a_thousand_tasks_that_miss_the_cache(world: World) -> None:
    cached = Cached()
    async with running(cached) as (cluster, producer):
        async with asyncio.TaskGroup() as group:
            for _ in range(1000):
                group.create_task(send(producer, "x"))
        assert cached.look_ups == 1
        await producer.send("t", "x")
    assert len(cluster.values("t")) == 1001


@virtual
async def test_a_record_serialized_from_the_cache_is_appended_by_the_call(world: World) -> None:
    async with running(Cached()) as (_, producer):
        await producer.send("t", "x")
        _ = producer.send("t", "x")
        assert len(core_of(producer).lot) == 0
        assert producer.explain("t", 0).records == 1


@virtual
async def test_it_is_not_called_while_another_record_waits(world: World) -> None:
    """It might start a look-up for each, however many there are."""
    cached = Cached()
    async with running(cached) as (cluster, producer):
        cached.known.add("quick")
        deliveries = [producer.send("t", text) for text in ("slow", "quick", "slow")]
        await wait_all(deliveries)
        assert cached.look_ups == 1
    assert cluster.values("t") == [b"slow", b"quick", b"slow"]


@virtual
async def test_rows_of_a_table_are_sent_behind_records_that_wait(world: World) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    async with running(encode) as (cluster, producer):
        _ = producer.send("t", "before")
        assert (await producer.send_table("t", pyarrow.table({"v": ["row"]}), value="v")).delivered == 1
    assert cluster.values("t") == [b"before", b"row"]


@virtual
async def test_other_tasks_have_their_turns(world: World) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    turned = 0
    seen: list[int] = []

    async def busy(data: bytes) -> bytes:
        loop.hold(TIME_SLICE)
        seen.append(turned)
        return data

    async def turn() -> None:
        nonlocal turned
        while True:
            turned += 1
            await asyncio.sleep(0)

    async with running(busy) as (_, producer):
        other = asyncio.create_task(turn())
        await wait_all([producer.send("t", b"v") for _ in range(20)])
        other.cancel()
    assert len(set(seen)) == len(seen), "no two in one turn"


async def numbered(data: tuple[int, int]) -> bytes:
    """The number, after so many milliseconds; never, if they are negative."""
    number, delay = data
    await (asyncio.sleep(delay / 1000) if delay >= 0 else asyncio.Event().wait())
    return b"%d" % number


def now_and_then(number: int) -> bytes | Awaitable[bytes]:
    """Bytes, or something to be awaited for them."""
    return b"k" if number % 2 else encode("k")


def started(call: Awaitable[Any]) -> asyncio.Future[Any]:
    return asyncio.ensure_future(call)


Plan = list[tuple[int, str]]
"""Of each record: the milliseconds its serializer takes, and what is done with it."""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 0, 1, 2, 5, 40, -1, 1000]),
            st.sampled_from(["await", "drop", "enqueue", "cancel", "many"]),
        ),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
    st.lists(st.integers(0, 60), min_size=12, max_size=12),
)
@pytest.mark.property
def test_order_is_kept_through_delays_and_cancellations(plan: Plan, known: bool, pauses: list[int]) -> None:
    @virtual
    async def run(world: World) -> None:
        async with running(numbered, known=known, max_block_ms=100, key_serializer=now_and_then) as (cluster, producer):
            tasks: list[tuple[int, asyncio.Future[Any]]] = []
            deliveries: list[tuple[int, Delivery]] = []
            for number, (delay, what) in enumerate(plan):
                value = (number, delay)
                match what:
                    case "drop":
                        deliveries.append((number, producer.send("t", value, key=number)))
                    case "many":
                        tasks.append((number, started(producer.send_many("t", [value]))))
                    case "enqueue":
                        tasks.append((number, started(producer.enqueue("t", value, key=number))))
                    case _:
                        tasks.append((number, started(producer.send("t", value, key=number))))
                        if what == "cancel":
                            _ = asyncio.get_running_loop().call_later(pauses[number] / 1000, tasks[-1][1].cancel)
                await asyncio.sleep(pauses[-1 - number] % 3 / 1000)
            await producer.flush()
            ends = await asyncio.gather(*[task for _, task in tasks], return_exceptions=True)
            ended: dict[int, Any] = {number: end for (number, _), end in zip(tasks, ends, strict=True)}
            ended |= {number: await end_of(delivery) for number, delivery in deliveries}
            there = [int(value or b"") for value in cluster.values("t")]
            assert there == sorted(set(there)), "in order, and each once"
            for number, end in ended.items():
                if isinstance(end, BulkResult):
                    assert end.delivered == (number in there)
                elif isinstance(end, asyncio.CancelledError):
                    assert plan[number][1] == "cancel"
                elif isinstance(end, BaseException):
                    assert isinstance(end, TimeoutException), end
                    assert number not in there
                else:
                    assert number in there
            assert all_memory_free(producer)

    run()


# Errors


@virtual
async def test_its_exception_fails_only_its_record(world: World) -> None:
    async def picky(data: str) -> bytes:
        await asyncio.sleep(0.001)
        if data == "bad":
            raise ValueError("no")
        return 5 if data == "no bytes" else data.encode()  # type: ignore[return-value]

    async with running(picky) as (cluster, producer):
        bad, good, none = producer.send("t", "bad"), producer.send("t", "good"), producer.send("t", "no bytes")
        enqueued = producer.enqueue("t", "bad")
        assert (await good).offset == 0
        with pytest.raises(SerializationException, match="the value_serializer cannot serialize a str: ValueError: no"):
            _ = await enqueued
        error = bad.exception()
        assert isinstance(error, SerializationException)
        assert error.outcome is Outcome.NOT_SENT
        assert isinstance(error.__cause__, ValueError)
        with pytest.raises(SerializationException, match="made a int of a str; it must make bytes or None"):
            await none
        result = await producer.send_many("t", ["bad", "x", "no bytes", "y"])
        assert [index for index, _ in result.errors] == [0, 2]
    assert cluster.values("t") == [b"good", b"x", b"y"]


@virtual
async def test_a_failure_that_nobody_awaits_is_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async def fails(data: str) -> bytes:
        raise ValueError("no")

    with caplog.at_level(logging.WARNING, "aioproducer"):
        async with running(fails) as (_, producer):
            _ = producer.send("t", "v")
            await producer.flush()
            await asyncio.sleep(1)
    assert "ValueError: no" in caplog.text


@virtual
async def test_misuse_is_raised_by_the_call(world: World) -> None:
    async with running(encode) as (_, producer):
        with pytest.raises(IllegalArgumentException, match="partition is -1"):
            _ = producer.send("t", "v", partition=-1)
        with pytest.raises(IllegalArgumentException, match="the topic is empty"):
            _ = producer.send("", "v")
        with pytest.raises(SerializationException, match="a header is 5"):
            _ = producer.send("t", "v", headers=[5])  # type: ignore[list-item]


@virtual
async def test_misuse_leaves_no_coroutine_that_was_never_awaited(world: World) -> None:
    async with running(lambda data: encode(data)) as (_, producer):
        with pytest.raises(IllegalArgumentException, match="timestamp_ms is -1"):
            _ = producer.send("t", "v", timestamp_ms=-1)


@virtual
async def test_a_record_that_turns_out_to_be_too_large(world: World) -> None:
    async def large(data: int) -> bytes:
        return bytes(data)

    async with running(large, max_request_size=2000, batch_size=1000) as (_, producer):
        with pytest.raises(RecordTooLargeException):
            await producer.send("t", 3000)
        result = await producer.send_many("t", [3000, 10])
        assert (result.delivered, result.failed) == (1, 1)


async def itself(data: int) -> bytes:
    raise asyncio.CancelledError


async def what_it_awaits(data: int) -> bytes:
    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    future.cancel()
    return await future


async def its_task(data: int) -> bytes:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)
    return b""


@pytest.mark.parametrize("cancels", [itself, what_it_awaits, its_task])
@virtual
async def test_a_serializer_that_is_cancelled_ends_its_record_alone(world: World, cancels: Any) -> None:
    async def serialize(data: int) -> bytes:
        return await cancels(data) if data == 2 else b"%d" % data

    async with running(serialize) as (cluster, producer):
        first, second, third = [producer.send("t", number) for number in (1, 2, 3)]
        with pytest.raises(SerializationException, match="the value_serializer was cancelled"):
            await second
        assert [(await first).offset, (await third).offset] == [0, 1]
    assert cluster.values("t") == [b"1", b"3"]


@virtual
async def test_the_producers_task_cancelled_by_somebody_is_no_loss_but_of_one_record(world: World) -> None:
    async with running(Slow()) as (cluster, producer):
        deliveries = [producer.send("t", number) for number in (5, 6, 7)]
        await turns(2)
        (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "aioproducer serializer"]
        task.cancel()
        await producer.flush()
        assert task.cancelled()
        assert [type(await end_of(delivery)).__name__ for delivery in deliveries] == [
            "SerializationException",
            "RecordMetadata",
            "RecordMetadata",
        ]
    assert cluster.values("t") == [b"6", b"7"]


def test_a_base_exception_of_a_serializer_stops_the_loop() -> None:
    class Stop(BaseException):
        pass

    async def stops(data: str) -> bytes:
        raise Stop

    async def main() -> None:
        loop = asyncio.get_running_loop()
        raised: list[Any] = []
        loop.set_exception_handler(lambda _, context: raised.append(context["exception"]))
        async with running(stops) as (_, producer):
            with pytest.raises(KafkaError, match="serialization was stopped by Stop"):
                await producer.send("t", "v")
        assert [type(error) for error in raised] == [Stop]

    asyncio.run(main())


@virtual
async def test_not_even_a_generator_exit_holds_up_the_others(world: World) -> None:
    async def exits(data: int) -> bytes:
        if data == 1:
            raise GeneratorExit
        return b"%d" % data

    async with running(exits) as (cluster, producer):
        first, second = producer.send("t", 1), producer.send("t", 2)
        with pytest.raises(KafkaError, match=r"has ended: GeneratorExit\(\)"):
            await first
        assert (await second).offset == 0
    assert cluster.values("t") == [b"2"]


# Waiting: max.block.ms


@virtual
async def test_a_serializer_that_never_returns_is_cancelled_after_max_block_ms(world: World) -> None:
    slow = Slow()
    async with running(slow, max_block_ms=2000) as (cluster, producer):
        never, behind = producer.send("t", -1), producer.send("t", 5)
        await asyncio.sleep(1)
        later = producer.send("t", 6)
        explained = producer.explain("t", 0)
        assert "wait for serializers" in str(explained)
        assert explained.parked == 3
        assert "value_serializer, which has been at work for 1.0 s" in str(explained)
        with pytest.raises(
            TimeoutException, match=r"within max\.block\.ms \(2000 ms\).* its value_serializer, .*2\.0 s"
        ):
            await never
        with pytest.raises(
            TimeoutException, match=r"an earlier record's, for 't': value_serializer, .*2\.0 s"
        ) as raised:
            await behind
        (entry,) = raised.value.ledger
        assert entry.cause == "serializer at work"
        assert entry.seconds == pytest.approx(2, abs=0.01)
        assert (await later).offset == 0
        assert slow.cancelled == 1
        with pytest.raises(TimeoutException):
            _ = await producer.enqueue("t", -1)
        result = await producer.send_many("t", [-1, 5])
        assert [type(error).__name__ for _, error in result.errors] == ["TimeoutException"] * 2
    assert cluster.values("t") == [b"6"]


@virtual
async def test_the_key_serializer_is_named_too(world: World) -> None:
    async with running(str.encode, key_serializer=Slow(), max_block_ms=100) as (_, producer):
        with pytest.raises(TimeoutException, match="its key_serializer"):
            await producer.send("t", "v", key=-1)


@virtual
async def test_metadata_and_memory_are_waited_for_within_the_same_time(world: World) -> None:
    async with running(Slow(), known=False, max_block_ms=2000) as (cluster, producer):
        delivery = producer.send("t", 500, partition=7)
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutException, match="partition 7 of topic 't' did not exist"):
            await delivery
        assert asyncio.get_running_loop().time() - began == pytest.approx(2, abs=0.1)
        # Serialized, it has its place before those that come later.
        first = producer.send("t", 50)
        assert [(await first).offset, (await producer.send("t", 0)).offset] == [0, 1]
    assert cluster.values("t") == [b"50", b"0"]


@virtual
async def test_memory_is_waited_for_in_the_same_order(world: World) -> None:
    async def large(data: int) -> bytes:
        await asyncio.sleep(0.001)
        return b"%d " % data + bytes(900)

    async with running(large, buffer_memory=3000, batch_size=1000) as (cluster, producer):
        await asyncio.gather(*[producer.send("t", number) for number in range(30)])
    assert [int((value or b"").split()[0]) for value in cluster.values("t")] == list(range(30))


class Deaf:
    """Goes on when it is cancelled."""

    def __init__(self) -> None:
        self.at_work = 0
        self.end = asyncio.Event()

    async def __call__(self, data: int) -> bytes:
        self.at_work += 1
        while not self.end.is_set():
            try:
                await self.end.wait()
            except asyncio.CancelledError:
                pass
        self.at_work -= 1
        return b"%d" % data


@virtual
async def test_serializers_that_outlive_their_cancellation_are_bounded_and_block_no_record_for_ever(
    world: World,
) -> None:
    deaf = Deaf()
    async with running(deaf, max_block_ms=1000) as (cluster, producer):
        for number in range(MOST_LEAVING):
            with pytest.raises(TimeoutException):
                await producer.send("t", number)
        assert deaf.at_work == MOST_LEAVING
        with pytest.raises(TimeoutException, match="it waited for its serializer, whose turn has not come"):
            await producer.send("t", 100)
        assert deaf.at_work == MOST_LEAVING
        deaf.end.set()
        assert (await producer.send("t", 101)).offset == 0
    assert cluster.values("t") == [b"101"]


@virtual
async def test_close_does_not_wait_for_them_for_ever(world: World) -> None:
    deaf = Deaf()
    async with running(deaf, max_block_ms=1000) as (_, producer):
        with pytest.raises(TimeoutException):
            await producer.send("t", 1)
        await producer.close()
        deaf.end.set()


# Cancelling


@virtual
async def test_a_cancelled_caller_takes_out_its_record_and_no_other(world: World) -> None:
    slow = Slow()
    async with running(slow) as (cluster, producer):
        tasks = [asyncio.ensure_future(producer.send("t", number)) for number in (3, -1, 4, -2, 5)]
        await asyncio.sleep(0.01)
        tasks[3].cancel()
        await asyncio.sleep(0.01)
        tasks[1].cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(end, asyncio.CancelledError) for end in ends] == [False, True, False, True, False]
        assert slow.begun == [3, -1, 4, 5]
        assert slow.cancelled == 1
    assert cluster.values("t") == [b"3", b"4", b"5"]


CALLS: dict[str, Callable[[KafkaProducer[Any, Any]], Awaitable[Any]]] = {
    "send": lambda producer: producer.send("t", "v"),
    "enqueue": lambda producer: producer.enqueue("t", "v"),
    "send_many": lambda producer: producer.send_many("t", ["v", "w"]),
}


@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("form", ["function", "task", "callable class"])
def test_cancelled_everywhere(how: How, call: str, form: str) -> None:
    async def scenario(strike: Strike) -> None:
        async with running(FORMS[form]) as (cluster, producer):
            before, struck = producer.send("t", "before"), asyncio.ensure_future(strike(CALLS[call](producer)))
            await turns(1)
            after = producer.send("t", "after")
            await struck
            await producer.flush()
            assert before.exception() is after.exception() is None
            there = [value or b"" for value in cluster.values("t")]
            assert there.count(b"v") <= 1
            assert (there[0], b"after" in there) == (b"before", True)
            if not strike.cancelled:
                assert b"v" in there

    assert everywhere(how, scenario, in_virtual_time) > 0


@virtual
async def test_a_serialization_whose_turn_never_came_leaves_no_coroutine_behind(world: World) -> None:
    async with running(lambda data: encode(data), parked_memory=0) as (cluster, producer):
        _ = producer.send("t", "dropped")
        _ = producer.send("t", "fails the one before")
        gc.collect()
        await producer.send("t", "v")
    assert cluster.values("t") == [b"v"]


@virtual
async def test_an_enqueue_that_nobody_awaits_is_sent_all_the_same(world: World) -> None:
    async with running(encode) as (cluster, producer):
        with pytest.warns(RuntimeWarning, match=r"'KafkaProducer\.enqueue' was never awaited"):
            producer.enqueue("t", "v")  # type: ignore[unused-coroutine]
        await producer.flush()
    assert cluster.values("t") == [b"v"]


# Where it runs

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")


@virtual
async def test_it_sees_the_context_variables_of_its_send(world: World) -> None:
    async def tell(data: None) -> bytes:
        before = variable.get()
        await asyncio.sleep(0.001)
        assert variable.get() == before
        variable.set("changed")
        await asyncio.sleep(0)
        assert variable.get() == "changed"
        return before.encode()

    async with running(tell) as (cluster, producer):
        for text in ("first", "second"):
            variable.set(text)
            _ = producer.send("t", 1)
        await producer.flush()
        assert variable.get() == "second"
    assert cluster.values("t") == [b"first", b"second"]


@virtual
async def test_scopes_and_time_outs_within_it_work(world: World) -> None:
    async def scoped(data: str) -> bytes:
        with anyio.move_on_after(0.01):
            await asyncio.sleep(10)
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(10)
        except TimeoutError:
            pass
        async with asyncio.TaskGroup() as group:
            made = group.create_task(encode(data))
        async with anyio.create_task_group() as others:
            others.start_soon(asyncio.sleep, 0.001)
        return made.result()

    async with running(scoped) as (cluster, producer):
        await asyncio.gather(producer.send("t", "a"), producer.send("t", "b"))
    assert cluster.values("t") == [b"a", b"b"]


@virtual
async def test_a_scope_of_the_caller_does_not_reach_into_it(world: World) -> None:
    async with running(Slow()) as (cluster, producer):
        with anyio.CancelScope() as scope:
            delivery = producer.send("t", 10)
            scope.cancel()
            await anyio.lowlevel.checkpoint()
        assert (await delivery).offset == 0
        with anyio.move_on_after(0.05):
            await producer.send("t", 100)
        assert (await producer.send("t", 20)).offset == 1
    assert cluster.values("t") == [b"10", b"20"]


# It calls the producer


@virtual
async def test_it_may_send_without_awaiting_and_that_record_comes_after_its_own(world: World) -> None:
    deliveries: list[Delivery] = []

    async def sends(data: str) -> bytes:
        await asyncio.sleep(0.001)
        if data == "outer":
            deliveries.append(producer.send("t", "inner"))
        return data.encode()

    async with running(sends) as (cluster, producer):
        await producer.send("t", "outer")
        await deliveries[0]
    assert cluster.values("t") == [b"outer", b"inner"]


def a_loop_of_its_own(call: Callable[[KafkaProducer[Any, Any]], Awaitable[Any]]) -> Any:
    async def serialize(data: Any) -> bytes:
        producer, text = data
        if text == "outer":
            await call(producer)
        return str(text).encode()

    return serialize


@pytest.mark.parametrize(
    ("call", "sent"),
    [
        (lambda producer: producer.send("t", (producer, "inner")), True),
        (lambda producer: wait_all([producer.send("t", (producer, "inner"))]), True),
        (lambda producer: producer.enqueue("t", (producer, "inner")), False),
        (lambda producer: producer.send_many("t", [(producer, "inner")]), False),
    ],
)
@virtual
async def test_awaiting_a_record_that_waits_for_it_is_refused_at_once(world: World, call: Any, sent: bool) -> None:
    async with running(a_loop_of_its_own(call)) as (cluster, producer):
        began = asyncio.get_running_loop().time()
        with pytest.raises(SerializationException, match="must wait until that serializer has finished") as raised:
            await producer.send("t", (producer, "outer"))
        assert isinstance(raised.value.__cause__, IllegalStateException)
        assert asyncio.get_running_loop().time() < began + 1
        await producer.flush()
        assert (await producer.send("t", (producer, "next"))).offset == sent
    assert cluster.values("t") == [b"inner"] * sent + [b"next"]


@virtual
async def test_a_refused_wait_awaits_none_of_its_records_any_more(world: World) -> None:
    """One that waits for something else counts in parked.memory as before."""
    lost: list[Delivery] = []

    async def waits(producer: KafkaProducer[Any, Any]) -> None:
        await wait_all([lost[0], producer.send("t", (producer, "inner"))])

    async with running(a_loop_of_its_own(waits)) as (_, producer):
        lost.append(producer.send("t", (producer, "lost"), partition=7))
        await asyncio.sleep(0.1)
        counted = producer.metrics()["parked-bytes"]
        assert counted > 0
        with pytest.raises(SerializationException):
            await producer.send("t", (producer, "outer"))
        await asyncio.sleep(0.1)
        assert producer.metrics()["parked-bytes"] == counted


@virtual
async def test_waiting_for_it_in_another_task_ends_after_max_block_ms(world: World) -> None:
    async with running(
        a_loop_of_its_own(lambda producer: asyncio.gather(producer.send("t", (producer, "inner")))), max_block_ms=1000
    ) as (cluster, producer):
        with pytest.raises(TimeoutException):
            await producer.send("t", (producer, "outer"))
        assert (await producer.send("t", (producer, "next"))).offset == 0
    assert cluster.values("t") == [b"next"]


@virtual
async def test_flush_within_it_is_refused(world: World) -> None:
    async with running(a_loop_of_its_own(lambda producer: producer.flush())) as (_, producer):
        with pytest.raises(SerializationException, match=r"flush\(\) was called in"):
            await producer.send("t", (producer, "outer"))


@virtual
async def test_close_within_it_stops_at_once(world: World) -> None:
    async with running(a_loop_of_its_own(lambda producer: producer.close())) as (_, producer):
        outer, other = producer.send("t", (producer, "outer")), producer.send("t", (producer, "other"))
        for delivery in (outer, other):
            with pytest.raises(KafkaError, match="the producer was closed before"):
                await delivery
        await producer.close()
        assert repr(producer).endswith(": closed>")


# The end


@virtual
async def test_flush_waits_for_every_record_sent_before_it(world: World) -> None:
    async with running(Slow(), linger_ms=1000) as (_, producer):
        before = [producer.send("t", number) for number in (50, 60)]
        flushing = asyncio.ensure_future(producer.flush())
        await turns(3)
        after = producer.send("t", 500)
        began = asyncio.get_running_loop().time()
        await flushing
        assert asyncio.get_running_loop().time() < began + 0.3
        assert all(delivery.done() for delivery in before)
        assert not after.done()


@virtual
async def test_close_waits_too(world: World) -> None:
    async with running(Slow()) as (cluster, producer):
        deliveries = [producer.send("t", number) for number in (50, 60)]
        await producer.close()
        assert [delivery.result().offset for delivery in deliveries] == [0, 1]
        with pytest.raises(IllegalStateException, match="the producer is closed"):
            _ = producer.send("t", 1)
        assert cluster.values("t") == [b"50", b"60"]


class Closed(Slow):
    """Notes how many were at work when it was closed."""

    at_close: int | None = None

    def close(self) -> None:
        self.at_close = self.at_work


@pytest.mark.parametrize("timeout", [0, 0.01])
@virtual
async def test_close_that_does_not_wait_fails_them_and_cancels_the_one_at_work(world: World, timeout: float) -> None:
    slow = Closed()
    async with running(slow) as (cluster, producer):
        deliveries = [producer.send("t", number) for number in (-1, 60)]
        await turns(3)
        await producer.close(timeout)
        for delivery in deliveries:
            assert delivery.outcome is Outcome.NOT_SENT
        assert (slow.cancelled, slow.at_close) == (1, 0)
        assert cluster.values("t") == []


@virtual
async def test_a_block_that_is_left_delivers_them(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, value_serializer=Slow()) as producer:
            for number in range(3):
                _ = producer.send("t", number)
        assert cluster.values("t") == [b"0", b"1", b"2"]


# Transactions


@asynccontextmanager
async def transactional(serializer: Any) -> AsyncIterator[tuple[ScriptedCluster, KafkaProducer[Any, Any]]]:
    async with running(serializer, transactional_id="mine") as (cluster, producer):
        await producer.init_transactions()
        yield cluster, producer


@virtual
async def test_a_transaction_is_committed_with_the_records_that_wait(world: World) -> None:
    async with transactional(Slow()) as (_, producer):
        with pytest.raises(IllegalStateException, match="belong to a transaction"):
            _ = producer.send("t", 1)
        async with producer.transaction():
            deliveries = [producer.send("t", number) for number in (50, 60)]
        assert [delivery.result().offset for delivery in deliveries] == [0, 1]
        async with producer.transaction():
            assert (await producer.send_many("t", [1, 2])).delivered == 2


@virtual
async def test_a_transaction_fails_with_a_record_that_cannot_be_serialized(world: World) -> None:
    async def fails(data: int) -> bytes:
        await asyncio.sleep(data / 1000)
        raise ValueError("no")

    async with transactional(fails) as (_, producer):
        await producer.begin_transaction()
        _ = producer.send("t", 10)
        with pytest.raises(TransactionAbortableException, match="ValueError: no"):
            await producer.commit_transaction()
        await producer.abort_transaction()


@virtual
async def test_an_abort_fails_those_that_wait(world: World) -> None:
    slow = Slow()
    async with transactional(slow) as (_, producer):
        await producer.begin_transaction()
        deliveries = [producer.send("t", number) for number in (-1, 60)]
        await turns(3)
        await producer.abort_transaction()
        for delivery in deliveries:
            assert isinstance(delivery.exception(), TransactionAbortedException)
        assert slow.cancelled == 1
        async with producer.transaction():
            _ = producer.send("t", 3)
        assert slow.begun == [-1, 3]


@virtual
async def test_a_transaction_fails_with_a_record_that_is_withdrawn(world: World) -> None:
    async with transactional(Slow()) as (_, producer):
        await producer.begin_transaction()
        task = asyncio.ensure_future(producer.enqueue("t", -1))
        await turns(3)
        task.cancel()
        await asyncio.sleep(0.1)
        with pytest.raises(TransactionAbortableException, match="withdrawn while it waited for a serializer"):
            await producer.commit_transaction()
        await producer.abort_transaction()


# Interceptors and partitioners


class Ends(ProducerInterceptor):
    """How each record went, in order."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, Any]] = []

    def on_send(self, record: Any) -> Any:
        self.notes.append(("sent", record.value))
        return record._replace(headers=[("value", str(record.value).encode())])

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None, headers: Any) -> None:
        self.notes.append(("acknowledged", headers[0][1]))

    def on_send_error(self, record: Any, topic_partition: Any, error: BaseException) -> None:
        self.notes.append((type(error).__name__, record.value))


@virtual
async def test_interceptors_see_a_record_before_and_its_end_once(world: World) -> None:
    async def encode_short(data: str) -> bytes:
        await asyncio.sleep(0.001)
        if len(data) > 3:
            raise ValueError("too long")
        return data.encode()

    ends = Ends()
    async with running(encode_short, interceptor_classes=[ends]) as (_, producer):
        deliveries = [producer.send("t", text) for text in ("a", "long", "b")]
        assert ends.notes == [("sent", "a"), ("sent", "long"), ("sent", "b")]
        await wait_all(deliveries)
        task = asyncio.ensure_future(producer.send("t", "c"))
        await turns(2)
        task.cancel()
        await asyncio.wait([task])
        await turns(2)
        with pytest.raises(IllegalArgumentException):
            _ = producer.send("t", "d", partition=-1)
    assert sorted(ends.notes[3:]) == sorted(
        [
            ("SerializationException", "long"),
            ("acknowledged", b"a"),
            ("acknowledged", b"b"),
            ("sent", "c"),
            ("KafkaError", "c"),
            ("sent", "d"),
            ("IllegalArgumentException", "d"),
        ]
    )


@pytest.mark.parametrize("known", [False, True])
@virtual
async def test_a_partitioner_is_given_what_was_made_and_of_what(world: World, known: bool) -> None:
    calls: list[Any] = []

    def last(topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, partitions: Any) -> int:
        calls.append((key, key_bytes, value, value_bytes))
        if value == "bad":
            raise ValueError("no partition")
        return 0

    async with running(encode, key_serializer=encode, partitioner_class=last, known=known) as (_, producer):
        good, bad = producer.send("t", "v", key="k"), producer.send("t", "bad")
        assert calls == []
        assert (await good).partition == 0
        with pytest.raises(PartitionerException):
            await bad
    assert calls == [("k", b"k", "v", b"v"), (None, None, "bad", b"bad")]


# Memory


@virtual
async def test_records_that_nobody_awaits_are_bounded_while_they_wait(world: World) -> None:
    slow = Slow()
    async with running(slow, parked_memory=10_000) as (_, producer):
        for _ in range(100):
            _ = producer.send("t", -1)
        assert len(core_of(producer).lot) < 20
        assert producer.metrics()["parked-bytes"] <= 10_000
        kept = [producer.send("t", -1) for _ in range(100)]
        await turns(10)
        assert len(core_of(producer).lot) < 20
        with pytest.raises(BufferExhaustedException, match="nobody awaits"):
            await kept[0]
        await producer.close(0)


@virtual
async def test_serialized_bytes_count_as_parked_memory_instead_of_their_data(world: World) -> None:
    """Records that have been serialized and wait for memory are bounded, too."""

    async def large(data: int) -> bytes:
        return bytes(3000)

    async with running(large, parked_memory=10_000, buffer_memory=4000, batch_size=1000) as (_, producer):
        deliveries = [producer.send("t", 1) for _ in range(12)]
        most = 0.0
        while not all(delivery.done() for delivery in deliveries):
            most = max(most, producer.metrics()["parked-bytes"])
            await asyncio.sleep(0)
        assert 4000 < most <= 10_000 + 3000
        ends = [await end_of(delivery) for delivery in deliveries]
        assert {type(end).__name__ for end in ends} == {"RecordMetadata", "BufferExhaustedException"}


@virtual
async def test_any_number_of_tasks_may_wait(world: World) -> None:
    async with running(Slow(), parked_memory=0) as (_, producer):
        ends = await asyncio.gather(*[producer.send("t", 0) for _ in range(300)])
        assert [end.offset for end in ends] == list(range(300))
