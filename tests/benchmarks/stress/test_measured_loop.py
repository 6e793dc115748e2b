from __future__ import annotations

import asyncio
import gc
import time

from benchmarks.stress.measured_loop import Held, MeasuredLoop


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def measured(*callbacks: float, own: float = 0.0) -> Held:
    """What is held by callbacks of so many seconds that run in one turn, and a step of the task that measures."""

    async def measure() -> Held:
        with loop.measured() as held:
            for seconds in callbacks:
                loop.call_soon(compute, seconds)
            await asyncio.sleep(0)
            compute(own)
            await asyncio.sleep(0)
        loop.call_soon(compute, 0.5)
        await asyncio.sleep(0)
        return held

    loop = MeasuredLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(measure())


def test_a_callback_and_a_turn_are_measured_without_the_task_that_measures() -> None:
    held = measured(0.02, 0.06, 0.04, own=0.3)
    assert held.callbacks == 3
    assert 0.06 <= held.callback < held.turn
    assert 0.12 <= held.turn < 0.3
    assert "compute" in held.what


def test_the_garbage_collector_is_measured_apart() -> None:
    async def measure() -> Held:
        garbage = [[number] for number in range(300_000)]
        with loop.measured() as held:
            loop.call_soon(gc.collect)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        del garbage
        return held

    loop = MeasuredLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        held = runner.run(measure())
    assert held.callbacks == 1
    assert 0.0 <= held.callback < held.collector
