from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from functools import partial
from random import Random

import pytest

from aioproducer.testing.simulation.loop import EPOCH_MS, SimulatedClock, SimulatedLoop, Stuck

from .simulated import World


def test_time_jumps_to_what_comes_next() -> None:
    world = World()

    async def sleep() -> float:
        began = world.loop.time()
        await asyncio.sleep(3600)
        return world.loop.time() - began

    began = time.monotonic()
    assert world.run(sleep) == pytest.approx(3600, abs=0.1)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("seed", range(10))
def test_a_timer_never_fires_early_and_seldom_much_too_late(seed: int) -> None:
    world = World(seed=seed)

    async def late() -> list[float]:
        loop = world.loop
        fired: list[float] = []
        for when in [Random(seed).uniform(0, 1) for _ in range(50)]:
            due = loop.time() + when
            loop.call_at(due, _fired, fired, loop, due)
        await asyncio.sleep(2)
        return fired

    found = world.run(late)
    assert len(found) == 50
    assert all(0 <= seconds < 0.01 for seconds in found)


def test_a_clock_of_whole_milliseconds_has_timers_that_fire_a_little_early() -> None:
    world = World(coarse=True)

    async def late() -> list[float]:
        loop = world.loop
        fired: list[float] = []
        for number in range(200):
            due = loop.time() + number / 1000 + 0.0003 * (number % 3)
            loop.call_at(due, _fired, fired, loop, due)
        await asyncio.sleep(1)
        assert all(round(moment * 1000) / 1000 == moment for moment in (loop.time() for _ in range(2000)))
        return fired

    found = world.run(late)
    assert len(found) == 200
    assert -0.001 < min(found) < 0, "half a millisecond, or a rounding error"
    assert max(found) < 0.01


def _fired(late: list[float], loop: SimulatedLoop, due: float) -> None:
    late.append(loop.time() - due)


def test_call_soon_is_first_come_first_served() -> None:
    world = World()
    called: list[int] = []

    async def many() -> None:
        for number in range(100):
            asyncio.get_running_loop().call_soon(called.append, number)
        await asyncio.sleep(0)

    world.run(many)
    assert called == list(range(100))


def test_no_two_looks_at_the_clock_agree() -> None:
    loop = World().loop
    assert loop.time() < loop.time()
    now = loop.now
    assert loop.now == now
    loop.hold(5)
    assert loop.now == now + 5
    loop.close()


def test_the_world_goes_on_before_the_loop_does() -> None:
    world = World()
    happened: list[str] = []

    async def wait() -> None:
        loop = world.loop
        for seconds in (2, 1):
            loop.at(loop.now + seconds, partial(happened.append, f"after {seconds}"))
        await asyncio.sleep(1.5)
        happened.append("timer")
        await asyncio.sleep(1)

    world.run(wait)
    assert happened == ["after 1", "timer", "after 2"]


def test_the_loop_is_held_up() -> None:
    world = World(stalls=1.0)

    async def turns() -> float:
        began = world.loop.now
        for _ in range(100):
            await asyncio.sleep(0)
        return world.loop.now - began

    assert 1 < world.run(turns) < 10  # 100 times 1/30 second, more or less


def test_nothing_to_wait_for_is_a_deadlock() -> None:
    world = World()

    async def wait() -> None:
        await world.loop.create_future()

    with pytest.raises(Stuck, match="deadlock"):
        world.loop.run_until_complete(wait())
    for task in asyncio.all_tasks(world.loop):
        task.cancel()
    world.loop.run_until_complete(asyncio.sleep(0))
    world.loop.close()


def test_turning_for_ever_is_noticed() -> None:
    world = World(max_steps=100)

    async def spin() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    task = world.loop.create_task(spin())
    with pytest.raises(Stuck, match=r"has turned 10\d times: something spins"):
        world.loop.run_until_complete(task)
    world.loop.max_steps = 200
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        world.loop.run_until_complete(task)
    world.loop.close()


def test_executors_are_inline() -> None:
    world = World()

    async def call() -> tuple[int, float]:
        began = world.loop.now
        thread = await world.loop.run_in_executor(None, threading.get_ident)
        with pytest.raises(ZeroDivisionError):
            await world.loop.run_in_executor(None, divmod, 1, 0)
        assert await asyncio.to_thread(threading.get_ident) == thread
        cancelled = world.loop.run_in_executor(None, threading.get_ident)
        cancelled.cancel()
        await asyncio.sleep(1)
        return thread, world.loop.now - began - 1

    thread, took = world.run(call)
    assert thread == threading.get_ident()
    assert 0 < took < 0.1


def test_names_have_addresses_that_stay() -> None:
    world = World()

    async def look_up() -> list[str]:
        found = []
        for name in ("a", "b", "a", "127.0.0.1"):
            ((family, kind, _, _, (address, port)),) = await world.loop.getaddrinfo(name, 9092)
            assert (family, kind, port) == (socket.AF_INET, socket.SOCK_STREAM, 9092)
            found.append(address)
        return found

    assert world.run(look_up) == ["10.0.1.1", "10.0.1.2", "10.0.1.1", "127.0.0.1"]


def test_a_task_without_references_is_collected() -> None:
    world = World(collects=True)
    errors: list[str] = []
    world.loop.set_exception_handler(lambda loop, context: errors.append(context["message"]))

    async def forget() -> None:
        async def wait() -> None:
            await asyncio.get_running_loop().create_future()

        _ = asyncio.get_running_loop().create_task(wait())
        del _
        for _ in range(20):
            await asyncio.sleep(0)

    gc.disable()
    try:
        world.run(forget)
    finally:
        gc.enable()
    assert errors == ["Task was destroyed but it is pending!"]


def test_the_clock_that_stamps_records_jumps_and_the_other_does_not() -> None:
    loop = World().loop
    jumps = [0.0, 100.0, 0.0]
    clock = SimulatedClock(loop, lambda: jumps.pop(0))
    began = EPOCH_MS + int(loop.now * 1000)
    assert [clock.time_ms() - began for _ in range(3)] == pytest.approx([0, 100_000, 100_000], abs=1)
    before = loop.now
    assert 0 < clock.monotonic() - before < 0.001
    loop.close()


def test_a_loop_that_waits_between_turns_may_run_for_long() -> None:
    world = World(max_steps=100)

    async def ask_again_and_again() -> None:
        for _ in range(1000):
            await asyncio.sleep(0.01)

    world.run(ask_again_and_again)
    assert world.loop.steps > 1000
