"""The distribution of values, counted so that the counts of many producers add up.

The bounds never change, so the sum of several producers' counts is the count of all their values: that is what
Prometheus aggregates. Percentiles of a single producer are a ``Histogram``'s.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple, final

from aioproducer.metrics.metric_name import MetricName


class Buckets(NamedTuple):
    """A distribution at one moment, over the lifetime of the producer."""

    name: MetricName
    doc: str
    bounds: Sequence[float]
    """The largest value of each bucket but the last, which has no bound."""
    counts: Sequence[int]
    """How many values were at most as large as each bound; the last one counts them all."""
    sum: float
    """The sum of all values."""


@final
class Distribution:
    """Counts values by bounds, and those beyond the last bound in one more count."""

    def __init__(self, name: MetricName, doc: str, bounds: tuple[float, ...]) -> None:
        self.name = name
        self.doc = doc
        self.bounds = bounds
        self._counts: list[int] = [0] * (len(bounds) + 1)
        self._sum: float = 0.0

    def record(self, value: float) -> None:
        """Counts one value."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self._sum += value

    def buckets(self) -> Buckets:
        """The counts so far; any thread may call it."""
        total = 0
        counts: list[int] = []
        for count in list(self._counts):
            total += count
            counts.append(total)
        return Buckets(self.name, self.doc, self.bounds, counts, self._sum)
