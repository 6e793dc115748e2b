"""Coroutines, run for threads that have no event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from aioproducer.spark.loop_thread import LoopThread
from tests.threads import assert_no_thread_is_left


async def where() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_runs_and_returns_what_they_return_or_raise() -> None:
    async def fail() -> None:
        raise ZeroDivisionError("x")

    with LoopThread("a-loop") as thread:
        assert thread.run(where()) == "a-loop"
        assert [future.result() for future in [thread.submit(where()) for _ in range(3)]] == ["a-loop"] * 3
        with pytest.raises(ZeroDivisionError):
            thread.run(fail())


def test_running_work_is_cancelled_by_close() -> None:
    ended = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    before = threading.enumerate()
    thread = LoopThread()
    begun = thread.submit(wait())
    thread.run(where())
    thread.close()
    thread.close()
    assert begun.cancelled()
    assert ended == [True]
    assert_no_thread_is_left(before)
