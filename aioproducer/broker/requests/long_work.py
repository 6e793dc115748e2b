"""Requests whose handling takes more time than one turn of the event loop may."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import TypeVar

from aioproducer.broker.requests.request import Request
from aioproducer.protocol.schema import Response
from aioproducer.tasks.background_threads import BackgroundThreads
from aioproducer.timing.clock import Clock

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Work that may be interrupted wherever it yields, and its result."""

FIRST_SLICE = 0.0005
"""Seconds of the first slice. Nearly all requests take less."""

SLICE = 0.002
"""Seconds of each later slice."""

LARGE_AT_ONCE = 16
"""How many large requests are handled at the same time."""


def finish(steps: Steps[T]) -> T:
    """Runs all the steps at once, and returns their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class LongWork:
    """The long requests of one node. Each gets a slice of time at once. If it needs more, it waits, and the waiting
    requests take turns: one of them gets another slice in each turn of the loop. So a request delays the others by one
    slice at most, however long it takes.

    When a client disconnects, its work is dropped unless it is ``needed``. ``threads`` encode the responses.
    """

    def __init__(self, clock: Clock, threads: BackgroundThreads) -> None:
        self._now = clock.monotonic
        self._threads = threads
        self._waiting: deque[tuple[Request, Steps[Response | None], bool]] = deque()
        self._scheduled = False
        self._large = 0
        self._large_waiting: deque[tuple[Request, Callable[[], None]]] = deque()

    def __len__(self) -> int:
        """How many requests wait for another slice."""
        return len(self._waiting)

    def run(self, request: Request, steps: Steps[Response | None], *, needed: bool = False) -> None:
        """Runs the steps and responds with their result, now or later. If it is None, they have ended the request."""
        self._advance(request, steps, needed, FIRST_SLICE)

    def run_large(self, request: Request, steps: Steps[Response | None], *, needed: bool = False) -> None:
        """As :meth:`run`, for steps that take much memory: at most ``LARGE_AT_ONCE`` run, and the others wait."""
        start = partial(self._start_large, request, steps, needed)
        if self._large < LARGE_AT_ONCE:
            start()
        else:
            self._large_waiting.append((request, start))

    def _start_large(self, request: Request, steps: Steps[Response | None], needed: bool) -> None:
        self._large += 1
        self.run(request, self._counted(steps), needed=needed)

    def _counted(self, steps: Steps[Response | None]) -> Steps[Response | None]:
        try:
            return (yield from steps)
        finally:
            self._large -= 1
            if self._large_waiting:
                request, start = self._large_waiting.popleft()
                request.call_back(start)

    def _advance(self, request: Request, steps: Steps[Response | None], needed: bool, seconds: float) -> None:
        until = self._now() + seconds
        try:
            next(steps)
            while self._now() < until:
                next(steps)
        except StopIteration as end:
            if end.value is not None:
                request.respond(end.value)
        else:
            request.took_long(self._threads)
            self._waiting.append((request, steps, needed))
            self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._call_back)

    def _call_back(self) -> None:
        # A handler runs it, because it deals with every exception.
        self._waiting[0][0].call_back(self._continue)

    def _continue(self) -> None:
        self._scheduled = False
        request, steps, needed = self._waiting.popleft()
        try:
            if request.abandoned and not needed:
                steps.close()
            else:
                self._advance(request, steps, needed, SLICE)
        finally:
            if self._waiting:
                self._schedule()
