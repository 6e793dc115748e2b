"""Half a millisecond, after which other tasks get a turn of the event loop."""

from __future__ import annotations

from typing import Final, final

from aioproducer.timing.loop_clock import LoopClock, Timekeeper

TIME_SLICE: Final = 0.0005
"""Seconds. A turn of the loop costs some 10 µs, so that the producer's speed hardly suffers."""


@final
class TimeSlice:
    """The time that something has worked without giving the loop a turn."""

    def __init__(self, loop: Timekeeper) -> None:
        self._time = LoopClock(loop).fine
        self.begin()

    def begin(self) -> None:
        """Now it begins."""
        self._began = self._time()

    def over(self) -> bool:
        return self._time() - self._began >= TIME_SLICE
