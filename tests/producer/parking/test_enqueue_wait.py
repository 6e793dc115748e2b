from __future__ import annotations

import asyncio

import pytest

from aioproducer.errors import KafkaError
from aioproducer.producer.parking.enqueue_wait import notify_all_settled, notify_settled, placed
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.timing.time_slice import TIME_SLICE
from tests.producer.parking.test_parking_lot import Parking


def enqueue(here: Parking) -> tuple[ParkedRecord, asyncio.Task[None]]:
    record = here.park("t", b"v", condition=asyncio.Condition())
    return record, asyncio.create_task(placed(here.lot, record))


async def turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_the_waiting_task_is_woken_when_the_record_is_placed() -> None:
    here = Parking()
    (first, waits), (second, waits_too) = enqueue(here), enqueue(here)
    await turns()
    here.learn("t", 1)
    assert not first.waiting()
    await turns()
    assert not waits.done()
    await notify_settled(here.lot, here.turn)
    await asyncio.gather(waits, waits_too)
    assert not here.lot.settled
    assert first.result.error is second.result.error is None


async def test_the_waiting_task_is_woken_when_the_record_fails() -> None:
    here = Parking()
    record, waits = enqueue(here)
    await turns()
    here.lot.fail_all(KafkaError("of no use"))
    await notify_settled(here.lot, here.turn)
    await waits
    assert record.result.error is not None


async def test_a_cancelled_enqueue_withdraws_the_record_unless_it_was_placed() -> None:
    here = Parking()
    (first, waits), (second, waits_too) = enqueue(here), enqueue(here)
    await turns()
    waits.cancel()
    await asyncio.wait([waits])
    assert first.result.error is not None
    here.learn("t", 1)
    waits_too.cancel()
    await asyncio.wait([waits_too])
    assert second.result.error is None
    assert len(here.values()) == 1


async def test_a_record_that_is_not_parked_any_more_is_not_waited_for() -> None:
    here = Parking()
    record, waits = enqueue(here)
    here.learn("t", 1)
    await waits
    assert not record.waiting()


async def test_a_callback_added_during_notification_runs_last() -> None:
    here = Parking()
    here.learn("t", 1)
    record, waits = enqueue(here)
    await turns()
    here.lot.place()
    async with record.condition:
        telling = asyncio.create_task(notify_settled(here.lot, here.turn))
        await turns()
        later, waits_too = enqueue(here)
        here.lot.place()
        assert list(here.lot.settled) == [record, later]
    await asyncio.gather(telling, waits, waits_too)
    assert not here.lot.settled


async def test_the_loop_runs_between_notifications() -> None:
    here = Parking()
    waiting = [enqueue(here) for _ in range(3)]
    await turns()
    here.learn("t", 1)
    here.loop.tick = TIME_SLICE  # each look at the clock
    await notify_settled(here.lot, here.turn)
    assert list(here.lot.settled) == [record for record, _ in waiting[1:]]
    await turns()
    assert [task.done() for _, task in waiting] == [True, False, False]
    await notify_all_settled(here.lot, here.turn)
    await asyncio.gather(*(task for _, task in waiting))


async def test_a_cancelled_notifier_leaves_the_remaining_waiters_to_the_next() -> None:
    here = Parking()
    (first, waits), (second, waits_too) = enqueue(here), enqueue(here)
    await turns()
    here.learn("t", 1)
    async with first.condition:
        telling = asyncio.create_task(notify_settled(here.lot, here.turn))
        await turns()
        telling.cancel()
        await asyncio.wait([telling])
    assert list(here.lot.settled) == [first, second]
    both = [notify_all_settled(here.lot, here.turn), notify_all_settled(here.lot, here.turn)]
    await asyncio.gather(*both, waits, waits_too)
    assert not here.lot.settled


@pytest.mark.parametrize("after", [0, 1, 2, 3])
async def test_a_cancellation_at_any_turn_of_the_telling_leaves_no_record_half_placed(after: int) -> None:
    here = Parking()
    record, waits = enqueue(here)
    await turns()
    here.learn("t", 1)
    telling = asyncio.create_task(notify_settled(here.lot, here.turn))
    for _ in range(after):
        await asyncio.sleep(0)
    waits.cancel()
    await asyncio.wait([waits, telling])
    assert record.result.error is None
    assert len(here.values()) == 1
