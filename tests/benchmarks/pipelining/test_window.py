from __future__ import annotations

import pytest

from benchmarks.harness.environment import Environment
from benchmarks.pipelining import window
from tests.support.leaks import no_leaks as no_leaks


def report(*shares: float) -> window.Report:
    """Of windows 1, 2, 3, …, each with so much of the rate it should have, over 100 ms."""
    rates = [window.Rate(size, 1, 100.0, 100.4, 10, share * size * 10) for size, share in enumerate(shares, start=1)]
    environment = Environment.now(loop="asyncio", broker="none")
    return window.Report(environment, range(1, len(shares) + 1), 100.0, 1, rates)


def test_a_rate_is_compared_with_window_by_round_trip() -> None:
    rate = window.Rate(20, 1, 150.0, 150.4, 400, 120.0)
    assert rate.expected == pytest.approx(133.33, abs=0.01)
    assert rate.share == pytest.approx(0.9)


def test_a_window_that_is_not_filled_is_a_problem() -> None:
    assert report(1.0, 0.98, 1.02).problems() == []
    (problem,) = report(1.0, 0.96).problems()
    assert problem == "window 2: within 3% of window ÷ round trip: it is 96.0%"
    assert "| window 2: within 3% of window ÷ round trip | 96.0% | **not met** |" in report(1.0, 0.96).tables()


def test_the_table_has_the_ratio_to_window_1() -> None:
    assert "| 2 | 100.4 ms | 20.00 | 20.00 | 100.0% | 2.00 |" in report(1.0, 1.0).markdown()


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize("size", [1, 20])
async def test_a_run(size: int) -> None:
    rate = await window.measure(size, 1, 10.0)
    assert (rate.window, rate.records) == (size, size * window.ROUND_TRIPS)
    assert 0 < rate.share <= 1.01, "no record comes before its round trip"
    assert rate.ping_ms >= 10.0


def test_the_plot_has_the_rates_beside_the_ideal() -> None:
    drawn = report(1.0, 0.9).plot()
    assert drawn.count("<polyline") == 2
    assert "window ÷ round trip" in drawn
