from __future__ import annotations

import asyncio

from aioproducer.producer.alarm import Alarm
from tests.support.virtual_time import World, virtual


@virtual
async def test_however_often_it_rings_it_wakes_once(world: World) -> None:
    alarm = Alarm()
    alarm.ring()
    alarm.ring()
    await alarm.rung()
    asleep = asyncio.ensure_future(alarm.rung())
    await asyncio.sleep(1)
    assert not asleep.done()
    alarm.ring()
    await asleep


@virtual
async def test_one_that_rings_all_the_time_lets_others_run(world: World) -> None:
    alarm = Alarm()
    ran = False

    def run() -> None:
        nonlocal ran
        ran = True

    asyncio.get_running_loop().call_soon(run)
    alarm.ring()
    await alarm.rung()
    assert ran


@virtual
async def test_it_rings_at_the_earliest_of_its_times(world: World) -> None:
    alarm, loop = Alarm(), asyncio.get_running_loop()
    began = loop.time()
    for after in (30, 10, 20):
        alarm.ring_at(began + after)
    await alarm.rung()
    assert 10 <= loop.time() - began < 10.1
    alarm.ring_at(began + 40)  # a new time after it rang
    await alarm.rung()
    assert 40 <= loop.time() - began < 40.1


@virtual
async def test_stopped_it_leaves_no_timer(world: World) -> None:
    alarm, loop = Alarm(), asyncio.get_running_loop()
    alarm.ring_at(loop.time() + 10)
    alarm.stop()
    alarm.ring_at(loop.time() + 20)
    asleep = asyncio.ensure_future(alarm.rung())
    await asyncio.sleep(100)
    assert not asleep.done()
    asleep.cancel()
    await asyncio.wait([asleep])
