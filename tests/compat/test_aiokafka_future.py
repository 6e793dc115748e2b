"""The result of ``send()`` is a complete future at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioproducer import Delivery
from aioproducer.compat.aiokafka import errors
from aioproducer.compat.aiokafka.future import READS_A_TURN, Ending, RecordFuture, reading_turns
from aioproducer.errors import DeliveryError, KafkaError, Outcome
from aioproducer.producer.delivery.produce_result import ProduceResult
from tests.producer.simulations.standing_loop import new_result, succeed

Sent = tuple[ProduceResult, Any]
"""The future by no type, because it ends with a number in the place of metadata."""
Use = Callable[[RecordFuture], Awaitable[Any]]


def sent() -> Sent:
    loop = asyncio.get_running_loop()
    result = new_result(loop, "orders", 3)
    return result, RecordFuture(Delivery(result, 5), ending(loop))


def ending(loop: asyncio.AbstractEventLoop) -> Ending:
    return Ending(loop, lambda metadata: metadata.offset, reading_turns())


def fail(result: ProduceResult) -> None:
    assert result.fail(DeliveryError.of(KafkaError("refused"), Outcome.NOT_SENT, ("orders", 3)))


async def by_wait(future: RecordFuture) -> Any:
    done, pending = await asyncio.wait([future])
    assert (done, pending) == ({future}, set())
    return future.result()


async def by_gather(future: RecordFuture) -> Any:
    return (await asyncio.gather(future, future))[1]


async def by_as_completed(future: RecordFuture) -> Any:
    (first,) = asyncio.as_completed([future])
    return await first


async def by_callback(future: RecordFuture) -> Any:
    called_with: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.add_done_callback(called_with.set_result)
    assert await called_with is future, "a callback is given the future that it was added to"
    return future.result()


async def by_await(future: RecordFuture) -> Any:
    return await future


async def twice(future: RecordFuture) -> Any:
    await asyncio.wait([asyncio.ensure_future(by_await(future)), asyncio.shield(future)])
    return await future


USES = [by_await, by_wait, by_gather, by_as_completed, by_callback, twice]


@pytest.mark.parametrize("late", [False, True], ids=["before", "afterwards"])
@pytest.mark.parametrize("use", USES)
async def test_every_use_gets_the_metadata(use: Use, late: bool) -> None:
    result, future = sent()
    if late:
        succeed(result)
    else:
        asyncio.get_running_loop().call_soon(succeed, result)
    assert await use(future) == 1005
    assert (future.done(), future.cancelled(), future.result(), future.exception()) == (True, False, 1005, None)


@pytest.mark.parametrize("late", [False, True], ids=["before", "afterwards"])
@pytest.mark.parametrize("use", USES)
async def test_every_use_gets_the_error(use: Use, late: bool) -> None:
    result, future = sent()
    if late:
        fail(result)
    else:
        asyncio.get_running_loop().call_soon(fail, result)
    with pytest.raises(errors.KafkaError, match="refused") as raised:
        await use(future)
    assert isinstance(raised.value.__cause__, KafkaError)
    assert (future.done(), future.exception()) == (True, raised.value)


async def test_before_its_end_it_has_none() -> None:
    _, future = sent()
    assert isinstance(future, asyncio.Future)
    assert asyncio.isfuture(future)
    assert asyncio.ensure_future(future) is future
    assert (future.done(), future.cancelled(), future.get_loop()) == (False, False, asyncio.get_running_loop())
    assert future._loop is asyncio.get_running_loop()
    for look in (future.result, future.exception):
        with pytest.raises(asyncio.InvalidStateError):
            look()
    assert "pending" in repr(future)


@pytest.mark.parametrize("end", [succeed, fail])
async def test_a_cancelled_future_stays_cancelled(end: Callable[[ProduceResult], object]) -> None:
    result, future = sent()
    assert future.cancel("enough")
    end(result)
    assert (future.done(), future.cancelled(), future.cancel()) == (True, True, False)
    with pytest.raises(asyncio.CancelledError, match="enough"):
        await future


async def test_a_done_future_cannot_be_cancelled() -> None:
    result, future = sent()
    succeed(result)
    assert not future.cancel()
    assert (future.cancelled(), await future) == (False, 1005)


async def test_a_callback_may_be_taken_back() -> None:
    result, future = sent()
    called: list[Any] = []
    future.add_done_callback(called.append)
    assert future.remove_done_callback(called.append) == 1
    succeed(result)
    await asyncio.sleep(0)
    assert not called


async def test_the_first_end_of_a_result_is_final() -> None:
    result, one = sent()
    other = RecordFuture(Delivery(result, 6), ending(one.get_loop()))
    one.set_result(7)
    other.set_exception(LookupError("mine"))
    succeed(result)
    assert one.result() == 7
    with pytest.raises(LookupError, match="mine"):
        await other


async def test_a_task_that_reads_many_results_in_a_row_gives_the_others_turns() -> None:
    loop = asyncio.get_running_loop()
    result, common = new_result(loop, "orders", 3), ending(loop)
    succeed(result, 3 * READS_A_TURN)
    futures = [RecordFuture(Delivery(result, index), common) for index in range(3 * READS_A_TURN)]
    read: list[Any] = []
    others: list[int] = []

    async def read_all() -> None:
        for future in futures:
            offset: Any = await future
            read.append(offset)

    async def other() -> None:
        while not reading.done():
            others.append(len(read))
            await asyncio.sleep(0)

    reading = asyncio.create_task(read_all())
    await asyncio.sleep(0)
    await other()
    assert others == [READS_A_TURN - 1, 2 * READS_A_TURN - 1, 3 * READS_A_TURN - 1]
    assert read == [future.result() for future in futures]


async def test_a_reader_cancelled_in_such_a_turn_leaves_the_result() -> None:
    result, _ = sent()
    succeed(result, 6)
    future: Any = RecordFuture(
        Delivery(result, 5), ending(asyncio.get_running_loop())._replace(turn_is_due=lambda: True)
    )
    reading = asyncio.ensure_future(by_await(future))
    await asyncio.sleep(0)
    assert reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert not future.cancelled()
    assert await future == future.result()
