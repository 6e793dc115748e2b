"""Where time comes from.

``now`` is always a parameter of a rule, never read inside one; the shells read it here. ``monotonic`` measures
durations and deadlines, ``time_ms`` stamps records.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds that only go forward, and milliseconds since the epoch."""

    def monotonic(self) -> float: ...

    def time_ms(self) -> int: ...


class SystemClock:
    """The machine's clocks."""

    monotonic = staticmethod(time.monotonic)

    @staticmethod
    def time_ms() -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that moves when told to: for tests."""

    def __init__(self, now: float = 0.0, time_ms: int = 1_700_000_000_000) -> None:
        self._now = now
        self._epoch_ms = time_ms - now * 1000

    def monotonic(self) -> float:
        return self._now

    def time_ms(self) -> int:
        return round(self._epoch_ms + self._now * 1000)

    def advance(self, seconds: float) -> None:
        self._now += seconds
