"""Requests whose handling takes more time than one turn of the event loop may."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from typing import TypeVar

from aioproducer.broker.requests.request import Request
from aioproducer.protocol.schema import Response
from aioproducer.tasks.background_threads import BackgroundThreads
from aioproducer.timing.clock import Clock

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Work that may be interrupted wherever it yields, and what comes of it."""

FIRST_SLICE = 0.0005
"""Seconds that a request may take at once. Nearly all take less."""

SLICE = 0.002
"""Seconds of a later turn."""


def finish(steps: Steps[T]) -> T:
    """Does all of it at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class LongWork:
    """Those of one node. Each has a slice of time at once; what is left of it waits, and one at a time has another
    slice per turn of the loop, in turns. So one of them costs the others a slice, however long it takes.

    The work of a client that is gone is dropped, unless it is ``needed`` all the same. ``threads``
    encode the responses.
    """

    def __init__(self, clock: Clock, threads: BackgroundThreads) -> None:
        self._now = clock.monotonic
        self._threads = threads
        self._waiting: deque[tuple[Request, Steps[Response | None], bool]] = deque()
        self._scheduled = False

    def __len__(self) -> int:
        """How many requests wait for another slice."""
        return len(self._waiting)

    def run(self, request: Request, steps: Steps[Response | None], *, needed: bool = False) -> None:
        """Responds with what the steps return, now or later; None ends the request otherwise."""
        self._advance(request, steps, needed, FIRST_SLICE)

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
        # By a handler: it knows what to do with whatever is raised.
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
