from __future__ import annotations

from benchmarks.harness.statistics import Spread, quantiles, ratios


def test_ratios_are_taken_within_rounds() -> None:
    # The machine was ten times slower in the second round, for both.
    assert ratios({1: 200.0, 2: 20.0, 3: 150.0}, {1: 100.0, 2: 10.0, 3: 100.0}) == Spread(2.0, 1.5, 2.0)


def test_rounds_that_only_one_has_do_not_count() -> None:
    assert ratios({1: 6.0, 2: 8.0}, {2: 4.0, 3: 1.0}) == Spread(2.0, 2.0, 2.0)
    assert ratios({1: 6.0}, {2: 4.0}) is None


def test_quantiles() -> None:
    assert quantiles([]) == {}
    assert quantiles([5.0]) == {"p50": 5.0, "p99": 5.0, "p99.9": 5.0, "max": 5.0}
    assert quantiles(range(1, 1001)) == {"p50": 500, "p99": 990, "p99.9": 999, "max": 1000}
