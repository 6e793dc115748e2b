from __future__ import annotations

import asyncio
import copy
import gc
import logging
import pickle
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import anyio
import pytest

from aioproducer.errors import DeliveryError, IllegalStateException, KafkaError, Outcome, TimeoutException
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.types import ProducerRecord, TimestampType
from tests.producer.simulations.standing_loop import (
    NOW_MS,
    CountingLot,
    Hooks,
    Loop,
    audience,
    failure,
    make_batch,
    new_result,
    park,
    succeed,
    waiting,
)


def parked() -> ParkedRecord:
    return ParkedRecord(audience(Loop()), ProducerRecord("t", b"v"), 100, now=0.0, max_block=1.0)


# What a delivery says


def test_while_nothing_is_known() -> None:
    delivery = Delivery(new_result(Loop(), "orders", 3), 0)
    assert not delivery.done()
    assert delivery.outcome is None
    with pytest.raises(IllegalStateException, match="not done yet"):
        delivery.result()
    with pytest.raises(IllegalStateException, match="not done yet"):
        delivery.exception()
    assert repr(delivery) == "<Delivery orders-3 pending>"


def test_its_topic_is_shown_in_one_line() -> None:
    assert repr(Delivery(new_result(Loop(), "a\n", 3), 0)) == r"<Delivery a\n-3 pending>"
    assert repr(make_batch(Loop(), topic="a\n", partition=3, records=1)).startswith(r"<ProducerBatch a\n-3 ")


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_can_be_neither_copied_nor_pickled(twin: Callable[[object], object]) -> None:
    """Compiled or not: else one would make something, and the other raise of a constructor."""
    with pytest.raises(TypeError, match="a Delivery stands for one record, and can be neither copied nor pickled"):
        twin(Delivery(new_result(Loop(), "orders", 3), 0))


def test_delivered() -> None:
    batch = make_batch(Loop(), topic="orders", partition=3, records=1)
    delivery = batch.append(NOW_MS + 7, b"key", None, None)
    batch.freeze()
    assert batch.succeed(40, -1)
    assert delivery.done()
    assert delivery.exception() is None
    assert delivery.outcome is None
    metadata = delivery.result()
    assert (metadata.topic, metadata.partition, metadata.offset) == ("orders", 3, 41)
    assert (metadata.timestamp_ms, metadata.timestamp_type) == (NOW_MS + 7, TimestampType.CREATE_TIME)
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (3, -1)
    assert delivery.result() == metadata
    assert repr(delivery) == "<Delivery orders-3 delivered>"


def test_delivered_with_the_brokers_time() -> None:
    batch = make_batch(Loop(), records=2)
    batch.freeze()
    assert batch.succeed(0, 0)  # the epoch itself is a time, too
    metadata = Delivery(batch.result, 1).result()
    assert metadata.offset == 1
    assert (metadata.timestamp_ms, metadata.timestamp_type) == (0, TimestampType.LOG_APPEND_TIME)


def test_delivered_at_an_unknown_offset() -> None:
    batch = make_batch(Loop(), records=3)
    batch.freeze()
    assert batch.succeed(-1, -1)
    assert [Delivery(batch.result, index).result().offset for index in range(3)] == [-1, -1, -1]


@pytest.mark.parametrize("aborted", [False, True])
def test_failed(aborted: bool) -> None:
    result = new_result(Loop())
    delivery = Delivery(result, 2)
    error = DeliveryError.of(TimeoutException("too late"), Outcome.NOT_SENT, ("t", 0))
    assert result.fail(error, aborted)
    assert delivery.done()
    assert delivery.outcome is Outcome.NOT_SENT
    with pytest.raises(TimeoutException, match="too late") as raised:
        delivery.result()
    assert isinstance(raised.value, DeliveryError)
    assert raised.value is not error
    assert isinstance(delivery.exception(), TimeoutException)
    assert repr(delivery) == f"<Delivery t-0 {'aborted' if aborted else 'failed'}>"


def test_a_failed_delivery_is_not_shown_as_aborted() -> None:
    result, record = new_result(Loop()), parked()
    result.fail(failure())
    record.fail(failure())
    assert repr(Delivery(result, 0)) == "<Delivery t-0 failed>"
    assert repr(record.delivery()) == "<Delivery t--1 failed>"


# Waiters


def test_each_waiter_gets_an_error_of_its_own() -> None:
    loop = Loop()
    result = new_result(loop)
    futures = [waiting(Delivery(result, 0)) for _ in range(10_000)]
    cause = KafkaError("the reason")
    told = failure()
    told.__cause__ = cause
    result.fail(told)
    errors = set()
    for future in futures:
        with pytest.raises(DeliveryError) as raised:
            future.result()
        assert len(traceback.extract_tb(raised.value.__traceback__)) <= 3
        assert raised.value.__cause__ is cause
        errors.add(id(raised.value))
    assert len(errors) == len(futures)
    assert told.__traceback__ is None


def test_asking_often_grows_no_traceback() -> None:
    result = new_result(Loop())
    delivery = Delivery(result, 0)
    result.fail(failure())
    for _ in range(1000):
        with pytest.raises(DeliveryError) as raised:
            delivery.result()
    assert len(traceback.extract_tb(raised.value.__traceback__)) <= 4


def test_awaiting_what_is_done_does_not_wait() -> None:
    result = new_result(Loop())
    succeed(result)
    future = Loop().create_future()
    result.add_waiter(0, future)
    assert future.result().offset == 1000


def test_a_waiter_for_the_whole_never_fails() -> None:
    result = new_result(Loop())
    before = Delivery(result, 3).settled()
    result.fail(failure())
    after = Delivery(result, 3).settled()
    assert before.result() is None
    assert after.result() is None


# Callbacks


def test_callbacks_come_in_record_order_and_after_the_outcome_is_there() -> None:
    loop = Loop()
    result = new_result(loop)
    calls: list[tuple[int, int]] = []
    for index in (3, 1, 2, 1, 0):
        Delivery(result, index).add_done_callback(lambda d, index=index: calls.append((index, d.result().offset)))  # type: ignore[misc]
    succeed(result)
    assert calls == [(0, 1000), (1, 1001), (1, 1001), (2, 1002), (3, 1003)]


def test_a_callback_added_afterwards_is_called_soon_and_not_at_once() -> None:
    loop = Loop()
    result = new_result(loop)
    succeed(result)
    delivery, calls = Delivery(result, 0), list[Delivery]()
    delivery.add_done_callback(calls.append)
    assert calls == []
    loop.run()
    assert calls == [delivery]


def test_a_callback_that_raises_spoils_nothing(caplog: pytest.LogCaptureFixture) -> None:
    result = new_result(Loop())
    calls: list[str] = []

    def broken(delivery: Delivery) -> None:
        calls.append("broken")
        raise ValueError("a bug of the user")

    Delivery(result, 0).add_done_callback(broken)
    Delivery(result, 1).add_done_callback(lambda _: calls.append("next"))
    task = waiting(Delivery(result, 0))
    with caplog.at_level(logging.ERROR):
        result.fail(failure())
    assert calls == ["broken", "next"]
    assert task.done()
    assert "a bug of the user" in caplog.text


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()])
def test_a_callback_that_stops_the_loop_does_so_after_the_batch_is_complete(stop: BaseException) -> None:
    loop = Loop()
    result = new_result(loop)
    calls: list[str] = []

    def stopping(delivery: Delivery) -> None:
        raise stop

    Delivery(result, 0).add_done_callback(stopping)
    Delivery(result, 1).add_done_callback(lambda _: calls.append("next"))
    succeed(result)
    assert calls == ["next"]
    with pytest.raises(type(stop)):
        loop.run()


def test_a_callback_may_ask_wait_and_add_callbacks() -> None:
    loop = Loop()
    result = new_result(loop)
    calls: list[Any] = []

    def curious(delivery: Delivery) -> None:
        calls.append(delivery.result().offset)
        delivery.add_done_callback(lambda _: calls.append("again"))
        later.add_done_callback(lambda _: calls.append("later"))
        future = loop.create_future()
        result.add_waiter(0, future)
        calls.append(future.result().offset)

    later = Delivery(result, 5)
    Delivery(result, 0).add_done_callback(curious)
    succeed(result)
    assert calls == [1000, 1000]
    loop.run()
    assert calls == [1000, 1000, "again", "later"]


def test_a_callback_knows_that_it_is_one() -> None:
    hooks = Hooks()
    result = new_result(Loop(), "t", 0, hooks)
    depths: list[int] = []

    def callback(delivery: Delivery) -> None:
        depths.append(hooks.depth)
        raise RuntimeError

    Delivery(result, 0).add_done_callback(callback)
    succeed(result)
    assert (depths, hooks.depth) == ([1], 0)


# In a real loop


async def test_many_tasks_wait_and_cancelling_one_touches_no_other() -> None:
    result = new_result(asyncio.get_running_loop())
    delivery = Delivery(result, 4)

    async def wait() -> int:
        return (await delivery).offset

    tasks = [asyncio.create_task(wait()) for _ in range(5)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.sleep(0)
    succeed(result)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results.pop(2), asyncio.CancelledError)
    assert results == [1004] * 4
    assert await delivery == delivery.result()


@pytest.mark.parametrize("ticks", range(4))
@pytest.mark.parametrize("cancelled_first", [True, False])
async def test_a_cancel_and_the_outcome_in_neighbouring_ticks(ticks: int, cancelled_first: bool) -> None:
    result = new_result(asyncio.get_running_loop())
    withdrawn: list[bool] = []

    def withdraw() -> None:
        if not result.done():
            withdrawn.append(True)
            result.fail(failure("withdrawn", Outcome.NOT_SENT))

    park(result, CountingLot(withdraw))

    async def wait() -> int:
        return (await Delivery(result, 0)).offset

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    if cancelled_first:
        task.cancel()
    else:
        succeed(result)
    for _ in range(ticks):
        await asyncio.sleep(0)
    if cancelled_first:
        ended = succeed(result)
    else:
        ended = True
        task.cancel()
    outcome = (await asyncio.gather(task, return_exceptions=True))[0]
    if outcome != 1000:
        assert isinstance(outcome, asyncio.CancelledError)
    # Either it was withdrawn in time, or it was delivered; never both, and nothing else.
    assert ended != bool(withdrawn)
    assert result.done()


async def test_gather_takes_deliveries() -> None:
    result, other = (new_result(asyncio.get_running_loop()) for _ in range(2))
    both = asyncio.gather(Delivery(result, 0), Delivery(other, 0), return_exceptions=True)
    await asyncio.sleep(0)
    succeed(result)
    other.fail(failure("gone"))
    delivered, failed = await both
    assert not isinstance(delivered, BaseException)
    assert delivered.offset == 1000
    assert isinstance(failed, DeliveryError)


async def test_a_failure_that_nobody_awaits_is_no_unretrieved_exception() -> None:
    problems: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: problems.append(context))
    result = new_result(loop)
    task = asyncio.ensure_future(Delivery(result, 0))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    result.fail(failure())
    del task, result
    gc.collect()
    await asyncio.sleep(0)
    assert problems == []


# As a coroutine, which tasks run


async def ended_later(delivery: Delivery) -> Any:
    """What a task for it becomes, when the record is delivered."""
    task: asyncio.Task[Any] = asyncio.create_task(delivery)  # type: ignore[arg-type]
    await asyncio.sleep(0)
    assert not task.done()
    succeed(delivery.place()[0])
    return await task


async def test_a_task_is_made_of_a_delivery() -> None:
    delivery = Delivery(new_result(asyncio.get_running_loop()), 7)
    assert asyncio.iscoroutine(delivery)
    assert (await ended_later(delivery)).offset == 1007
    assert (await asyncio.ensure_future(delivery)).offset == 1007  # of one that is done, too


async def test_many_tasks_of_one_delivery_end_each_for_itself() -> None:
    result = new_result(asyncio.get_running_loop())
    delivery = Delivery(result, 0)
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(delivery) for _ in range(3)]  # type: ignore[arg-type]
    tasks[0].cancel()  # before its first step
    await asyncio.sleep(0)
    tasks[1].cancel()  # while it waits
    await asyncio.sleep(0)
    assert tasks[0].cancelled()
    assert tasks[1].cancelled()
    assert not delivery.done()
    result.fail(failure("gone"))
    with pytest.raises(DeliveryError, match="gone"):
        await tasks[2]


async def test_a_task_that_is_cancelled_withdraws_a_parked_record_as_one_that_awaits_it_does() -> None:
    result = new_result(asyncio.get_running_loop())
    lot = CountingLot()
    park(result, lot)
    task: asyncio.Task[Any] = asyncio.create_task(Delivery(result, 0))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert lot.cancelled == 1


async def test_a_task_group_ends_with_its_deliveries() -> None:
    delivered, failed = (new_result(asyncio.get_running_loop()) for _ in range(2))
    tasks: list[asyncio.Task[Any]] = []

    async def send_both() -> None:
        async with asyncio.TaskGroup() as group:
            tasks.extend(group.create_task(Delivery(result, 0)) for result in (delivered, failed))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            succeed(delivered)
            await asyncio.sleep(0)
            failed.fail(failure("gone"))

    with pytest.raises(ExceptionGroup) as raised:
        await send_both()
    assert tasks[0].result().offset == 1000
    assert [str(error) for error in raised.value.exceptions] == [str(failed.raised(0))]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python has eager tasks since 3.12")
async def test_eager_tasks_are_made_of_deliveries() -> None:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(vars(asyncio)["eager_task_factory"])
    try:
        assert (await ended_later(Delivery(new_result(loop), 1))).offset == 1001
        result = new_result(loop)
        succeed(result)
        task: asyncio.Task[Any] = asyncio.create_task(Delivery(result, 0))  # type: ignore[arg-type]
        assert task.done()
        assert task.result().offset == 1000
    finally:
        loop.set_task_factory(None)


within = vars(asyncio)["wait_for"]  # users may use it


async def test_all_that_takes_awaitables_takes_a_delivery() -> None:
    loop = asyncio.get_running_loop()
    result = new_result(loop)
    delivery = Delivery(result, 0)
    loop.call_later(0, succeed, result)
    first = next(iter(asyncio.as_completed([delivery])))
    waits = [asyncio.shield(delivery), within(delivery, 60), asyncio.ensure_future(delivery), first]
    done, _ = await asyncio.wait([asyncio.ensure_future(delivery)])
    assert [metadata.offset for metadata in await asyncio.gather(*waits, delivery)] == [1000] * 5
    assert [task.result().offset for task in done] == [1000]
    threaded: Future[Any] = asyncio.run_coroutine_threadsafe(delivery, loop)  # type: ignore[arg-type]
    assert (await asyncio.wrap_future(threaded)).offset == 1000
    async with anyio.create_task_group() as group:
        group.start_soon(within, delivery, 60)


async def test_wait_refuses_a_delivery_and_nothing_has_happened_to_it() -> None:
    """It refuses all that create_task takes. A delivery cannot please both."""
    result = new_result(asyncio.get_running_loop())
    delivery = Delivery(result, 0)
    with pytest.raises(TypeError, match="coroutines is forbidden, use tasks"):
        await asyncio.wait([delivery])  # type: ignore[type-var]
    assert result.number_waiting() == 0
    assert (await ended_later(delivery)).offset == 1000


@pytest.mark.parametrize("thrown", [(KeyError("it"),), (KeyError, KeyError("it")), (KeyError, KeyError("it"), None)])
def test_an_exception_thrown_into_a_delivery_is_raised(thrown: tuple[Any, ...]) -> None:
    delivery = Delivery(new_result(Loop()), 0)
    with pytest.raises(KeyError, match="it"):
        delivery.throw(*thrown)
    with pytest.raises(ZeroDivisionError):
        delivery.throw(ZeroDivisionError)
    delivery.close()
    assert not delivery.done()


async def test_a_task_of_a_delivery_is_shown() -> None:
    delivery = Delivery(new_result(asyncio.get_running_loop()), 0)
    task: asyncio.Task[Any] = asyncio.create_task(delivery)  # type: ignore[arg-type]
    assert "Delivery" in repr(task)
    assert task.get_stack() == []
    await asyncio.sleep(0)
    assert "Delivery" in repr(task)
    task.cancel()
    await asyncio.wait([task])
