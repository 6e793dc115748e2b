from __future__ import annotations

import asyncio

import pytest

from aioproducer.producer.sender.alarm import Alarm
from tests.support.virtual_time import World, virtual


async def wake(alarm: Alarm) -> None:
    await alarm.rung()
    alarm.up()


@virtual
async def test_however_often_it_rings_it_wakes_once(world: World) -> None:
    alarm = Alarm()
    alarm.ring()
    alarm.ring()
    await wake(alarm)
    asleep = asyncio.ensure_future(wake(alarm))
    await asyncio.sleep(1)
    assert not asleep.done()
    alarm.ring()
    alarm.ring()  # before the sleeper has run
    await asleep
    asleep = asyncio.ensure_future(wake(alarm))
    await asyncio.sleep(1)
    assert not asleep.done()
    asleep.cancel()
    await asyncio.wait([asleep])


@virtual
async def test_rung_while_the_sleeper_is_up_it_wakes_again(world: World) -> None:
    alarm = Alarm()
    asleep = asyncio.ensure_future(wake(alarm))
    await asyncio.sleep(1)
    alarm.ring()
    await asleep
    alarm.ring()
    await wake(alarm)


@virtual
async def test_an_alarm_that_rings_all_the_time_lets_other_tasks_run(world: World) -> None:
    alarm = Alarm()
    ran = False

    def run() -> None:
        nonlocal ran
        ran = True

    asyncio.get_running_loop().call_soon(run)
    alarm.ring()
    await wake(alarm)
    assert ran


@virtual
async def test_it_rings_at_the_earliest_of_its_times(world: World) -> None:
    alarm, loop = Alarm(), asyncio.get_running_loop()
    began = loop.time()
    for after in (30, 10, 20):
        alarm.ring_at(began + after)
    await wake(alarm)
    assert 10 <= loop.time() - began < 10.1
    alarm.ring_at(began + 40)  # a new time after it rang
    await wake(alarm)
    assert 40 <= loop.time() - began < 40.1


def test_it_does_not_ring_early_where_the_clock_has_whole_milliseconds() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        alarm, loop = Alarm(), asyncio.get_running_loop()
        for part in range(1, 10):
            when = loop.time() + 0.002 + part / 10_000
            alarm.ring_at(when)
            await wake(alarm)
            assert loop.time() >= when

    uvloop.run(main())


@virtual
async def test_stopped_it_leaves_no_timer(world: World) -> None:
    alarm, loop = Alarm(), asyncio.get_running_loop()
    alarm.ring_at(loop.time() + 10)
    alarm.stop()
    alarm.ring_at(loop.time() + 20)
    asleep = asyncio.ensure_future(wake(alarm))
    await asyncio.sleep(100)
    assert not asleep.done()
    asleep.cancel()
    await asyncio.wait([asleep])
