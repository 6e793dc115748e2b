"""Work that has to wait for its turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Start(Protocol):
    """Starts work, in a thread for example."""

    def __call__(self, work: Callable[[], T], /) -> asyncio.Future[T]: ...


class Turns:
    """At most ``size`` works at once; further ones wait, first come, first served."""

    def __init__(self, start: Start, size: int) -> None:
        self._start = start
        self._size = size
        self._running = 0
        self._waiting: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self._closed = False

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """What the work returns or raises; cancelled if :meth:`close` comes before its turn."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if self._closed:
            done.cancel()
        else:
            self._waiting.append((work, done))
            self._fill()
        return done

    def resize(self, size: int) -> None:
        """More works at once, or fewer: what has started ends first."""
        self._size = size
        self._fill()

    def close(self) -> None:
        """Drops what waits; what has started ends."""
        self._closed = True
        while self._waiting:
            self._waiting.popleft()[1].cancel()

    def _fill(self) -> None:
        while self._waiting and self._running < self._size:
            work, done = self._waiting.popleft()
            if not done.done():
                self._running += 1
                self._start(work).add_done_callback(partial(self._ended, done))

    def _ended(self, done: asyncio.Future[Any], ran: asyncio.Future[Any]) -> None:
        self._running -= 1
        if not done.done():
            if ran.cancelled():
                done.cancel()
            elif (error := ran.exception()) is not None:
                done.set_exception(error)
            else:
                done.set_result(ran.result())
        self._fill()
