"""Requests whose handling takes more time than one turn of the event loop may."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from aioproducer.broker.requests.fair_queue import FairQueue
from aioproducer.broker.requests.request import Request
from aioproducer.broker.requests.slices import Slices
from aioproducer.protocol.schema import Response

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Work that may be interrupted wherever it yields, and its result."""

FIRST_SLICE = 0.0005
"""Seconds of the first slice. Nearly all requests take less."""

AT_ONCE = 0.0001
"""Seconds that a request gets at once even if others have used up the turn, after its first step: enough for a dozen
partitions or topics, so a request that names few does not wait for the first slices of others."""

LARGE_AT_ONCE = 16
"""How many large requests are handled at the same time."""

LONGEST_AT_ONCE = 8
"""How many requests that need more than one later slice take turns at the same time: their answers may be large."""


def finish(steps: Steps[T]) -> T:
    """Runs all the steps at once, and returns their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class Room(Protocol):
    """What limits how much changes before the next commit of a data directory."""

    @property
    def room(self) -> int:
        """How many more logs may change; 0 means that one should wait."""

    def when_room(self, callback: Callable[[], object]) -> None:
        """Calls back once there is room, maybe at once."""


@dataclass(slots=True)
class _Work:
    request: Request
    steps: Steps[Response | None]
    needed: bool
    is_longest: bool = False
    """Whether it is one of those that take turns until they are done."""

    @property
    def owner(self) -> str:
        return self.request.connection.address


class LongWork:
    """The long requests of one node. Each gets a slice of time at once, a shorter one (:data:`AT_ONCE`) if others have
    used up this turn of the loop. If it needs more, it takes turns with all other work that takes long
    (:class:`Slices`), and so do the steps that encode its response. Requests that need still more are parked unless few
    are that long, because each keeps a part of its answer in memory. Wherever requests wait, the addresses of clients
    take turns.

    When a client disconnects, its work is dropped unless it is ``needed``: then it changes something, and also waits
    while there is no ``room`` for more changes.
    """

    def __init__(self, slices: Slices, room: Room) -> None:
        self._slices = slices
        self._room = room
        self._queued = 0
        self._without_room: deque[_Work] = deque()
        self._parked: FairQueue[_Work] = FairQueue()
        self._longest = 0
        self._large = 0
        self._large_waiting: FairQueue[tuple[Request, Callable[[], None]]] = FairQueue()

    def __len__(self) -> int:
        """How many requests wait for another slice."""
        return self._queued + len(self._parked) + len(self._without_room)

    def run(self, request: Request, steps: Steps[Response | None], *, needed: bool = False) -> None:
        """Runs the steps and responds with their result, now or later. If it is None, they have ended the request."""
        work = _Work(request, steps, needed)
        if self._slices.begin(partial(self._begin, work), FIRST_SLICE):
            return
        # Two steps at least, though the time may have passed because another process had the core.
        if self._advance(work, self._slices.now()):
            return
        if self._has_room(work) and self._advance(work, self._slices.now() + AT_ONCE):
            return
        self._queued += 1
        self._slices.add(work.owner, partial(self._begin_late, work), first=True)

    def run_large(self, request: Request, steps: Steps[Response | None], *, needed: bool = False) -> None:
        """As :meth:`run`, for steps that take much memory: at most ``LARGE_AT_ONCE`` run, and the others wait."""
        start = partial(self._start_large, request, steps, needed)
        if self._large < LARGE_AT_ONCE:
            start()
        else:
            self._large_waiting.append(request.connection.address, (request, start))

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

    def _begin(self, work: _Work, until: float) -> None:
        if not self._advance(work, until):
            work.request.took_long(self._encode)
            self._queue(work)

    def _begin_late(self, work: _Work, until: float) -> None:
        self._queued -= 1
        until = min(until, self._slices.now() + FIRST_SLICE)
        work.request.call_now(partial(self._begin, work, until))

    def _encode(self, request: Request, steps: Steps[None]) -> None:
        # Not parked: its message takes memory until it is encoded.
        self._longest += 1
        self._queue(_Work(request, steps, needed=False, is_longest=True))

    def _queue(self, work: _Work) -> None:
        self._queued += 1
        self._slices.add(work.owner, partial(self._continue, work))

    def _continue(self, work: _Work, until: float) -> None:
        self._queued -= 1
        # As a handler does, because it deals with every exception.
        work.request.call_now(partial(self._take_turn, work, until))

    def _take_turn(self, work: _Work, until: float) -> None:
        is_over = True
        try:
            if work.request.abandoned and not work.needed:
                work.steps.close()
            elif not self._has_room(work):
                is_over = False
            else:
                is_over = self._advance(work, until)
        finally:
            if is_over:
                self._over(work)
            else:
                self._wait(work)

    def _advance(self, work: _Work, until: float) -> bool:
        """Whether that was all of it."""
        now = self._slices.now
        try:
            next(work.steps)
            while now() < until and self._has_room(work):
                next(work.steps)
        except StopIteration as end:
            if end.value is not None:
                work.request.respond(end.value)
            return True
        return False

    def _has_room(self, work: _Work) -> bool:
        return not work.needed or self._room.room > 0

    def _wait(self, work: _Work) -> None:
        if not self._has_room(work):
            if work.is_longest:
                self._over(work)
            self._without_room.append(work)
            if len(self._without_room) == 1:
                self._room.when_room(self._room_again)
        elif not work.is_longest and self._longest >= LONGEST_AT_ONCE:
            self._parked.append(work.owner, work)
        else:
            self._longest += not work.is_longest
            work.is_longest = True
            self._queue(work)

    def _room_again(self) -> None:
        works, self._without_room = self._without_room, deque()
        for work in works:
            self._wait(work)

    def _over(self, work: _Work) -> None:
        """It takes no more turns, at least for now."""
        self._longest -= work.is_longest
        work.is_longest = False
        while self._parked and self._longest < LONGEST_AT_ONCE:
            self._wait(self._parked.popleft())
