from __future__ import annotations

import asyncio

from aioproducer import wait_all
from aioproducer.errors import BufferExhaustedException
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import ProduceResult
from aioproducer.producer.delivery.wait_all import MANY, all_ended
from tests.producer.parking.test_parking_lot import Parking
from tests.producer.simulations.standing_loop import failure, new_result, succeed


def results(count: int) -> list[ProduceResult]:
    return [new_result(asyncio.get_running_loop()) for _ in range(count)]


async def turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_all_deliveries_are_waited_for_delivered_or_failed() -> None:
    batch, failed, part, ended = results(4)
    succeed(ended)
    deliveries = [Delivery(result, index) for result in (batch, failed, ended) for index in range(3)]
    waiting = asyncio.create_task(wait_all(deliveries))
    await turns()
    failed.fail(failure())
    batch.forward([(0, part, 0)])
    await turns()
    assert not waiting.done()
    succeed(part)
    await waiting
    assert [delivery.exception() is None for delivery in deliveries] == [True] * 3 + [False] * 3 + [True] * 3


async def test_all_parked_records_count_as_awaited_from_the_beginning_until_it_is_cancelled() -> None:
    here = Parking(capacity=0)
    vars(here.loop)["create_future"] = asyncio.get_running_loop().create_future
    deliveries = [here.send("t", b"%d" % number) for number in range(3)]
    waiting = asyncio.create_task(wait_all(deliveries))
    await turns()
    here.loop.run()
    assert [record.awaiters for record in here.lot.records()] == [1, 1, 1]
    waiting.cancel()
    await asyncio.wait([waiting])
    assert all(isinstance(delivery.exception(), BufferExhaustedException) for delivery in deliveries)


async def test_records_placed_meanwhile_are_left_alone_by_a_cancelled_wait() -> None:
    here = Parking(capacity=0)
    vars(here.loop)["create_future"] = asyncio.get_running_loop().create_future
    waiting = asyncio.create_task(wait_all([here.send("t", b"1"), here.send("t", b"2")]))
    await turns()
    here.learn("t", 1)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert here.values() == [b"1", b"2"]


async def test_all_results_have_ended_when_the_parts_they_were_split_into_have() -> None:
    parked, batch, other, *parts = results(5)
    parked.forward([(0, batch, 0)])
    waiting = asyncio.create_task(all_ended([parked, other]))
    await turns()
    batch.forward([(0, parts[0], 0), (1, parts[1], 0)])
    for result in (other, *parts):
        await turns()
        assert not waiting.done()
        if result is other:
            result.fail(failure())  # of which whoever waits for all is not told
        else:
            succeed(result)
    await waiting
    assert not other.error_seen


async def test_a_task_that_waits_for_one_list_of_many_after_the_other_gives_the_others_turns() -> None:
    (ended,) = results(1)
    succeed(ended)
    turns_of_others = 0

    async def wait_three_times(count: int) -> None:
        for _ in range(3):
            await wait_all([Delivery(ended, 0)] * count)

    for count, turns_given in ((MANY, 3), (MANY - 1, 0)):
        turns_of_others = -1  # in which the task begins
        waiting = asyncio.create_task(wait_three_times(count))
        while not waiting.done():
            turns_of_others += 1
            await asyncio.sleep(0)
        assert turns_of_others == turns_given
