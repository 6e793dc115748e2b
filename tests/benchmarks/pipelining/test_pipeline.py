from __future__ import annotations

from random import Random

import pytest

from benchmarks.harness.environment import Environment
from benchmarks.pipelining import pipeline, pipeline_run
from benchmarks.pipelining.pipeline_run import AUTO, PACED, SATURATING, Figures, Line
from tests.support.leaks import no_leaks as no_leaks


def report(line: Line, **runs: tuple[float, float, float]) -> pipeline.Report:
    """Of settings, each with its records/s, p50 and p99."""
    figures = [
        Figures(line, setting.removeprefix("linger"), 1, rate, 20.0, 1000.0, p50, p99)
        for setting, (rate, p50, p99) in runs.items()
    ]
    environment = Environment.now(loop="asyncio", broker="none")
    return pipeline.Report(environment, [line], [one.setting for one in figures], 1, 1.0, figures)


FIXED = {"linger0": (1000.0, 50.0, 90.0), "linger5": (1000.0, 60.0, 70.0)}


def test_auto_is_held_against_the_best_fixed_setting_in_each_figure() -> None:
    line = Line(PACED, 20, 5)
    assert report(line, **FIXED, auto=(995.0, 56.9, 78.9)).problems() == []
    (problem,) = report(line, **FIXED, auto=(1000.0, 57.1, 70.0)).problems()
    assert problem.startswith("auto's p50 ≤ the best linger's + 10% + 2 ms, on every line: it is ")
    assert problem.endswith("57.1 ms beside 50.0 ms (paced, 20 ms, window 5)")
    (problem,) = report(line, **FIXED, auto=(1000.0, 50.0, 79.1)).problems()
    assert "79.1 ms beside 70.0 ms" in problem
    (problem,) = report(line, **FIXED, auto=(899.0, 50.0, 70.0)).problems()
    assert "899 of 1,000 records/s" in problem


def test_a_verdict_is_about_the_worst_line() -> None:
    good = report(Line(PACED, 1, 5), **FIXED, auto=(1000.0, 50.0, 70.0))
    bad = report(Line(PACED, 20, 5), **FIXED, auto=(800.0, 90.0, 110.0))
    both = pipeline.Report(
        good.environment, [*good.lines, *bad.lines], good.settings, 1, 1.0, [*good.figures, *bad.figures]
    )
    assert [verdict.measured.rpartition(" (")[2] for verdict in both.verdicts()] == ["paced, 20 ms, window 5)"] * 3
    assert len(both.problems()) == 3
    assert (
        "| 20 ms | 5 | 50.0 / 90.0 (20 × 1000) | 60.0 / 70.0 (20 × 1000) | 90.0 / 110.0 (20 × 1000) |" in both.tables()
    )


def test_without_anything_to_compare_there_is_no_verdict() -> None:
    assert report(Line(PACED, 20, 5), **FIXED).verdicts() == []
    assert report(Line(PACED, 20, 5), auto=(1000.0, 50.0, 70.0)).verdicts() == []


def test_latencies_count_only_where_records_have_their_times() -> None:
    assert report(Line(SATURATING, 20, 5), **FIXED, auto=(1000.0, 500.0, 900.0)).problems() == []


def test_the_tables() -> None:
    written = report(Line(PACED, 20, 5), **FIXED, auto=(1000.0, 51.0, 69.0)).markdown()
    assert "| round trip | window | linger 0 | linger 5 | auto |" in written
    assert "| 20 ms | 5 | 50.0 / 90.0 (20 × 1000) | 60.0 / 70.0 (20 × 1000) | 51.0 / 69.0 (20 × 1000) |" in written
    assert "| 20 ms | 5 | 1,000 (20 × 1000) |" in report(Line(SATURATING, 20, 5), auto=(1000.0, 0.0, 0.0)).markdown()


def test_arrivals_are_the_same_for_every_setting() -> None:
    times = list(pipeline_run.arrivals(Random(1), 2.0))
    assert times == list(pipeline_run.arrivals(Random(1), 2.0))
    assert len(times) == pytest.approx(2 * pipeline_run.RATE, rel=0.1)
    assert max(times) < 2.0


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize("arrivals", [PACED, SATURATING])
async def test_a_run(arrivals: str) -> None:
    figures = await pipeline_run.measure(Line(arrivals, 5, 20), AUTO, 1, 0.5)
    assert figures.records_per_s > 0
    assert figures.requests_per_s > 0
    assert figures.batch_bytes > 200
    assert (figures.p50_ms is None) == (arrivals == SATURATING)
    if figures.p50_ms is not None and figures.p99_ms is not None:
        assert 5 <= figures.p50_ms <= figures.p99_ms


def test_the_plot_has_a_line_for_each_setting() -> None:
    drawn = report(Line(PACED, 20, 5), **FIXED, auto=(1000.0, 51.0, 69.0)).plot()
    assert drawn.count("<polyline") == 3
    assert "linger 5" in drawn


@pytest.mark.parametrize("setting", ["5", AUTO])
def test_a_run_in_virtual_time_is_the_same_every_time(setting: str) -> None:
    line = Line(PACED, 150, 20, partitions=2)
    figures = pipeline_run.simulate(line, setting, 1, 0.5)
    assert figures == pipeline_run.simulate(line, setting, 1, 0.5)
    assert figures.p50_ms is not None
    assert 150 <= figures.p50_ms < 170
