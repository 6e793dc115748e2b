"""Threads for work that takes more time than the event loop has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from aioproducer.tasks.turns import Turns

T = TypeVar("T")


class BackgroundThreads:
    """A pool of at most ``size`` threads, which may be resized while they work. None is started before there is work.

    To close it drops what waits, and waits for nothing.
    """

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._turns = Turns(self._in_thread, size)
        self._executor: ThreadPoolExecutor | None = None

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """What the work returns or raises; cancelled if the pool is closed before a thread is free."""
        return self._turns.run(work)

    def resize(self, size: int) -> None:
        """More threads, or fewer: what is under way ends first."""
        if size != self._size:
            self._size = size
            self._leave()
            self._turns.resize(size)

    def close(self) -> None:
        self._turns.close()
        self._leave()

    def _in_thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self._size, thread_name_prefix=self._name)
        return asyncio.get_running_loop().run_in_executor(self._executor, work)

    def _leave(self) -> None:
        """Each thread ends after what it is at: the turns have left nothing queued behind that."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None
