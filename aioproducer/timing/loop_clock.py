"""The clock of an event loop, and all that has to be known of how finely it counts.

uvloop's clock goes on by whole milliseconds, and its timers ring at the nearest of them, which may be earlier than they
were set to. Whoever then asks the clock finds that nothing is due, sets the timer again, and is called in turn after
turn of the loop until that millisecond is over. So timers are set to ticks of the clock (:meth:`LoopClock.tick`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final, Protocol, final

_COARSE: Final = ("uvloop", "winloop")
"""Modules of loops whose clocks go on by whole milliseconds."""


class Timekeeper(Protocol):
    """The part of an event loop that is needed here."""

    def time(self) -> float: ...


@final
class LoopClock:
    """Times are the loop's, in seconds."""

    def __init__(self, loop: Timekeeper) -> None:
        coarse = type(loop).__module__.startswith(_COARSE)
        self._ticks: float = 1e3 if coarse else 1e6
        """In a second. Microseconds are below what any timer is good for."""
        self.fine: Callable[[], float] = time.monotonic if coarse else loop.time
        """A clock for less than a millisecond, which counts from another time than the loop's, maybe."""

    def tick(self, when: float) -> float:
        """The first tick from ``when`` on, in the very bits that the clock will show.

        Sums of times have rounding errors: what is beyond a tick by no more than that is this tick.
        """
        return math.ceil(round(when * self._ticks, 2)) / self._ticks
