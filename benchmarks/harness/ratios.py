"""Summarizes rounds of figures. Only figures of the same round are compared: a machine's speed drifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median


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
    """``figures ÷ others``, round by round; of rounds that only one of them has nothing is known."""
    both = figures.keys() & others.keys()
    return Spread.of([figures[number] / others[number] for number in both]) if both else None
