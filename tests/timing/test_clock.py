from __future__ import annotations

import time

from aioproducer.timing.clock import Clock, SystemClock
from tests.support.manual_clock import ManualClock


def test_the_systems_clocks() -> None:
    clock: Clock = SystemClock()
    before = time.monotonic(), time.time() * 1000
    now = clock.monotonic(), clock.time_ms()
    after = time.monotonic(), time.time() * 1000
    assert before[0] <= now[0] <= after[0]
    assert before[1] - 1 <= now[1] <= after[1]
    assert isinstance(now[1], int)


def test_a_manual_clock_moves_only_by_advance() -> None:
    clock = ManualClock(5.0, 1000)
    assert (clock.monotonic(), clock.time_ms()) == (5.0, 1000)
    clock.advance(1.5)
    assert (clock.monotonic(), clock.time_ms()) == (6.5, 2500)


def test_a_manual_clock_loses_no_small_steps() -> None:
    clock = ManualClock(0.0, 0)
    for _ in range(10_000):
        clock.advance(0.0001)
    assert abs(clock.time_ms() - 1000) <= 1
