"""Exponential back-off with jitter (Kafka's ``ExponentialBackoff``: factor 2, ±20 %, but never above the longest)."""

from __future__ import annotations

from random import Random

JITTER = 0.2


class ExponentialBackoff:
    """How long to wait before trying again; as configs have it, in milliseconds."""

    def __init__(self, initial_ms: float, longest_ms: float, random: Random) -> None:
        self.initial = initial_ms / 1000
        """Seconds, without jitter."""
        self._longest = longest_ms / 1000
        self._random = random

    def wait(self, failures: int) -> float:
        """Seconds to wait after ``failures`` (at least 1) failures in a row."""
        return self._wait(failures, self._random.uniform(-1, 1))

    def longest(self, failures: int) -> float:
        """The longest that ``wait`` answers."""
        return self._wait(failures, 1)

    def _wait(self, failures: int, jitter: float) -> float:
        steps = min(failures - 1, 30)
        middle = min(self.initial * 2**steps, self._longest)
        return float(min(middle * (1 + JITTER * jitter), self._longest))
