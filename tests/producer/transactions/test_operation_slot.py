from __future__ import annotations

import asyncio

import pytest

from aioproducer.errors import IllegalStateException, KafkaError, TimeoutException
from aioproducer.producer.transactions.operation_slot import OperationSlot
from tests.support.virtual_time import World, virtual


def slot(last_error: KafkaError | None = None) -> OperationSlot:
    return OperationSlot(1000, lambda: last_error)


async def fail(seconds: float = 0) -> None:
    await asyncio.sleep(seconds)
    raise KafkaError("of no use")


@virtual
async def test_waiting_callers_get_the_end_and_free_the_slot(world: World) -> None:
    one = slot()
    one.begin("work", fail(0.5))
    assert one.name == "work"
    with pytest.raises(KafkaError, match="of no use"):
        await one.ended(one.until())
    assert one.name == ""


@virtual
async def test_all_waiters_are_notified(world: World) -> None:
    one = slot()
    one.begin("work", fail(0.5))
    ends = await asyncio.gather(one.ended(one.until()), one.ended(one.until()), return_exceptions=True)
    assert [str(end) for end in ends] == ["of no use"] * 2


@virtual
@pytest.mark.parametrize("last_error", [None, KafkaError("nobody there")])
async def test_an_operation_that_exceeds_max_block_ms_goes_on(world: World, last_error: KafkaError | None) -> None:
    one = slot(last_error)
    one.begin("work", asyncio.sleep(1.5))
    with pytest.raises(TimeoutException, match=r"work has not ended within max\.block\.ms=1000: it continues") as told:
        await one.ended(one.until())
    assert ("nobody there" in str(told.value)) is (last_error is not None)
    assert one.name == "work"
    await one.ended(one.until())
    assert one.name == ""


@virtual
async def test_there_is_room_for_one(world: World) -> None:
    one = slot()
    one.begin("work", asyncio.sleep(0.5))
    with pytest.raises(IllegalStateException, match=r"work has not ended; .* before another"):
        one.make_room("another")
    with pytest.raises(TimeoutException):
        await one.vacated(asyncio.get_running_loop().time())
    await one.vacated(one.until())
    one.begin("another", asyncio.sleep(0.5))
    await one.ended(one.until())


@virtual
async def test_an_unobserved_failure_does_not_block_later_records(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    one = slot()
    one.begin("work", fail())
    await asyncio.sleep(0.1)
    one.check_ended("another")
    assert one.name == "work"
    one.make_room("another")
    assert one.name == ""
    assert [record.getMessage() for record in caplog.records] == ["work failed, and no caller was waiting: of no use"]


@virtual
async def test_waiters_for_cancelled_or_closed_work_get_the_reason(world: World) -> None:
    for end in (lambda one: one.cancel(KafkaError("of no use")), OperationSlot.close):
        one = slot()
        end(one)  # there is nothing to be ended
        one.begin("work", asyncio.sleep(10))
        waiting = asyncio.create_task(one.ended(one.until()))
        await asyncio.sleep(0)
        end(one)
        await one.settled()
        with pytest.raises(KafkaError, match=r"of no use|work was given up: the producer was closed"):
            await waiting
        assert one.name == ""
