"""Exponential back-off with jitter (Kafka's ``ExponentialBackoff``: factor 2, ±20 %, but never above the longest)."""

from __future__ import annotations

from random import Random

JITTER = 0.2


def backoff(failures: int, initial: float, longest: float, random: Random) -> float:
    """Seconds to wait after ``failures`` (at least 1) failures in a row."""
    steps = min(failures - 1, 30)
    middle = min(initial * 2**steps, longest)
    return float(min(middle * (1 + JITTER * random.uniform(-1, 1)), longest))
