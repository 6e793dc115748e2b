"""The spread of several rounds, the ratios of two sides in the same rounds, and the quantiles of one run's samples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import sub, truediv
from statistics import median
from typing import Final

QUANTILES: Final = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
"""Shares of the samples, by name."""


@dataclass(frozen=True)
class Spread:
    """The median of some figures, and the least and greatest of them."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        return cls(median(figures), min(figures), max(figures))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f}–{self.most:.2f})"


def ratios(figures: Mapping[int, float], others: Mapping[int, float]) -> Spread | None:
    """``figures ÷ others`` of each round that both have; None if they have none in common.

    Only figures of the same round are compared: a machine's speed drifts.
    """
    return _of_each_round(truediv, figures, others)


def differences(figures: Mapping[int, float], others: Mapping[int, float]) -> Spread | None:
    """``figures - others``, as ``ratios``."""
    return _of_each_round(sub, figures, others)


def _of_each_round(
    both: Callable[[float, float], float], figures: Mapping[int, float], others: Mapping[int, float]
) -> Spread | None:
    rounds = figures.keys() & others.keys()
    return Spread.of([both(figures[number], others[number]) for number in rounds]) if rounds else None


def quantiles(samples: Collection[float]) -> dict[str, float]:
    """By name, the least sample that so large a share of them does not exceed; empty without samples."""
    ordered = sorted(samples)
    count = len(ordered)
    return {name: ordered[max(0, -int(-share * count // 1) - 1)] for name, share in QUANTILES.items()} if count else {}
