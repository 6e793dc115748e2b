"""Event loops count time in different steps, and timers shall ring neither early nor for nothing."""

from __future__ import annotations

import asyncio
import time
from random import Random

import pytest

from aioproducer.timing.loop_clock import LoopClock


class Loop:
    """One whose module may be any."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def time(self) -> float:
        return self.now


class Coarse(Loop):
    """One that counts milliseconds."""


Coarse.__module__ = "uvloop.loop"


@pytest.mark.parametrize(("when", "tick"), [(1.0, 1.0), (1.0001, 1.001), (1.0009, 1.001), (0.0, 0.0)])
def test_a_coarse_clock_ticks_by_milliseconds(when: float, tick: float) -> None:
    assert LoopClock(Coarse()).tick(when) == tick


def test_a_fine_clock_ticks_by_microseconds() -> None:
    assert LoopClock(Loop()).tick(1.0001) == 1.0001
    assert LoopClock(Loop()).tick(1.000_000_4) == 1.000_001


def test_a_sum_of_ticks_is_a_tick_whatever_its_rounding_error() -> None:
    clock, random = LoopClock(Coarse()), Random(0)
    for _ in range(10_000):
        began, wait = random.randrange(10**9), random.randrange(10**6)
        assert clock.tick(began / 1000 + wait / 1000) == (began + wait) / 1000


@pytest.mark.parametrize("module", ["uvloop", "uvloop.loop", "winloop"])
def test_the_fine_clock_is_not_a_coarse_loops_own(module: str) -> None:
    class Loops(Loop):
        pass

    Loops.__module__ = module
    before = time.monotonic()
    assert before <= LoopClock(Loops(-1.0)).fine() <= time.monotonic()


def test_the_fine_clock_is_any_other_loops_own() -> None:
    assert LoopClock(Loop(5.0)).fine() == 5.0


def test_a_timer_set_to_a_tick_finds_it_come() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        clock = LoopClock(loop)
        for part in range(20):
            rung = asyncio.Event()
            when = clock.tick(loop.time() + 0.002 + part / 13_000)
            loop.call_at(when, rung.set)
            await rung.wait()
            assert loop.time() >= when

    uvloop.run(main())
