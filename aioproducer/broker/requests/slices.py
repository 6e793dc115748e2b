"""Divides the time of the event loop between short requests and work that takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

from aioproducer.broker.requests.fair_queue import FairQueue
from aioproducer.timing.clock import Clock

SLICE = 0.001
"""Seconds of a turn of the loop that all work which takes long has together."""

MOST_DEFERRED = 4
"""How many turns of the loop in a row a slice is deferred for what is urgent."""

Advance = Callable[[float], object]
"""Does a part of some work until the clock shows the given time, or until the part is complete. If something is left,
it adds itself again."""


class Slices:
    """The long work of a broker: requests, responses, transactions, time-outs, closed connections. All of it together
    gets one slice of time in a turn of the loop.

    Owners, such as the addresses of clients, take turns, so the work of one of them does not wait for all of another's.
    What takes little time comes first: while anything is :attr:`urgent`, the slice is deferred, but not for ever.
    """

    def __init__(self, clock: Clock) -> None:
        self._now = clock.monotonic
        self._beginning: FairQueue[Advance] = FairQueue()
        self._waiting: FairQueue[Advance] = FairQueue()
        self._begun = 0.0
        """Seconds of this turn that work had which began in it."""
        self._deferred = 0
        self._scheduled = False
        self.urgent: dict[Callable[[], bool], None] = {}
        """Whether something waits that takes little time: requests to be handled, responses to be written, a commit to
        be begun or ended."""

    def __len__(self) -> int:
        """How many works wait for a slice."""
        return len(self._beginning) + len(self._waiting)

    def now(self) -> float:
        """Seconds of the clock that slices are measured by."""
        return self._now()

    def begin(self, advance: Advance, seconds: float) -> bool:
        """Begins a work at once and gives it so many seconds, because most take less. Returns False, and does nothing,
        if other works that have begun in this turn took half of the slice."""
        if self._begun >= SLICE / 2:
            return False
        began = self._now()
        try:
            advance(began + seconds)
        finally:
            self._begun += self._now() - began
            self._schedule()
        return True

    def add(self, owner: Hashable, advance: Advance, *, first: bool = False) -> None:
        """Queues a work, or the rest of one, for a later turn of the loop: before those that have begun if it is its
        ``first`` part."""
        (self._beginning if first else self._waiting).append(owner, advance)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        if self._deferred < MOST_DEFERRED and any(waits() for waits in self.urgent):
            self._deferred += 1
            self._schedule()
            return
        self._deferred = 0
        began = self._now()
        self._begun = 0.0
        try:
            self._run(self._beginning, began + SLICE / 2)
            self._run(self._waiting, began + SLICE)
        finally:
            if self._beginning or self._waiting:
                self._schedule()

    def _run(self, works: FairQueue[Advance], until: float) -> None:
        """Gives each of the works a part of the time, as long as there is some."""
        for _ in range(len(works)):
            works.popleft()(until)
            if self._now() >= until:
                break
