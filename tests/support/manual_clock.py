"""A clock that moves only by a call."""

from __future__ import annotations


class ManualClock:
    """An ``aioproducer.timing.clock.Clock``."""

    def __init__(self, now: float = 0.0, time_ms: int = 1_700_000_000_000) -> None:
        self._now = now
        self._epoch_ms = time_ms - now * 1000

    def monotonic(self) -> float:
        return self._now

    def time_ms(self) -> int:
        return round(self._epoch_ms + self._now * 1000)

    def advance(self, seconds: float) -> None:
        self._now += seconds
