"""Wakes the Sender."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable
from typing import final

from aioproducer.timing.loop_clock import LoopClock


@final
class Alarm:
    """Ends a sleep, at once or at a set time. All rings before the sleeper is awake make one wake."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = LoopClock(self._loop)
        self._rung = False
        self._sleeper: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        """When the timer rings: at the next tick."""
        self._stopped = False

    def ring(self) -> None:
        self._rung = True
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    def ring_at(self, when: float) -> None:
        """Rings when the loop's clock reaches that time, or earlier."""
        if self._stopped or self._timer_at <= when:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = when
        self._timer = self._loop.call_at(self._clock.tick(when), self._timer_fired)

    def rung(self) -> Awaitable[None]:
        """Sleeps until it rings; if it has rung already, for a turn of the loop, so that other tasks run, too."""
        if self._rung:
            return asyncio.sleep(0)
        self._sleeper = self._loop.create_future()
        return self._sleeper

    def up(self) -> None:
        """Marks the sleeper awake; later rings start a new wake."""
        self._rung = False

    def stop(self) -> None:
        """Cancels the timer; no other one is set."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _timer_fired(self) -> None:
        self._timer = None
        self._timer_at = math.inf
        self.ring()
