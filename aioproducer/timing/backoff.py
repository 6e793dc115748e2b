"""Exponential back-off with jitter (Kafka's ``ExponentialBackoff``: factor 2, ±20 %, but never above the longest)."""

from __future__ import annotations

from random import Random

JITTER = 0.2


class ExponentialBackoff:
    """How long to wait before trying again; as configs have it, in milliseconds."""

    def __init__(self, initial_ms: float, longest_ms: float, random: Random) -> None:
        self.initial = initial_ms / 1000
        """Seconds, without jitter."""
        self.longest = longest_ms / 1000
        """Seconds that no wait exceeds."""
        self._random = random

    def wait(self, failures: int) -> float:
        """Seconds to wait after ``failures`` (at least 1) failures in a row."""
        steps = min(failures - 1, 30)
        middle = min(self.initial * 2**steps, self.longest)
        return float(min(middle * (1 + JITTER * self._random.uniform(-1, 1)), self.longest))
