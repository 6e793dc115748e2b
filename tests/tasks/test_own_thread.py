from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from aioproducer.tasks.own_thread import in_own_thread


async def test_it_does_not_wait_for_the_loops_executor_and_ends() -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    over = threading.Event()
    busy = asyncio.get_running_loop().run_in_executor(None, over.wait)
    name = await in_own_thread("worker", lambda: threading.current_thread().name)
    assert name.startswith("worker")
    assert not busy.done()
    over.set()
    await busy
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join()


async def test_an_exception_of_the_work_is_raised() -> None:
    def fail() -> None:
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError):
        await in_own_thread("worker", fail)
