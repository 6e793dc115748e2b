"""``python -m benchmarks spark``: what it calls a failure. The measuring itself needs real Kafka, Spark and minutes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from benchmarks.environment import Environment
from benchmarks.spark import PARTITIONS, Report, Written
from benchmarks.spark_process import EXACTLY_ONCE, SINKS, TASKS

ENVIRONMENT = Environment("a day", "c0ffee", "a machine", "a system", 0.5, "Python", "asyncio", "a broker")
MARKERS = TASKS * PARTITIONS
GOOD = {"Spark's own": 10.0, "aioproducer": 8.0, EXACTLY_ONCE: 11.0}


def report(seconds: Mapping[str, float], more: Mapping[str, int] | None = None) -> Report:
    written = [
        Written(sink, rows, size, taken, rows + (more or {}).get(sink, 0))
        for sink, taken in seconds.items()
        for rows, size in ((1000, 1000), (3000, 100))
    ]
    return Report(ENVIRONMENT, 1, written)


def test_what_is_as_it_should_be() -> None:
    good = report(GOOD, {EXACTLY_ONCE: MARKERS})
    assert good.problems() == []
    assert list(GOOD) == list(SINKS)
    assert "| 3,000 of 100 B | 300 (1.00 ×) | 375 (1.25 ×) | 273 (0.91 ×) |" in good.markdown()
    assert good.markdown().index("of 100 B") < good.markdown().index("of 1000 B")


def test_the_median_counts() -> None:
    runs = [Written("aioproducer", 1000, 100, seconds, 1000) for seconds in (1.0, 2.0, 50.0)]
    assert Report(ENVIRONMENT, 3, runs).rate("aioproducer", 1000, 100) == 500.0


@pytest.mark.parametrize(
    ("sink", "seconds", "problem"),
    [
        ("aioproducer", 8.5, "aioproducer is 1.18 × as fast as Spark's own, not 1.2"),
        (EXACTLY_ONCE, 11.2, "aioproducer, exactly-once is 0.89 × as fast as Spark's own, not 0.9"),
    ],
)
def test_a_sink_that_is_too_slow(sink: str, seconds: float, problem: str) -> None:
    found = report({**GOOD, sink: seconds}).problems()
    assert [one.partition(": ")[2] for one in found] == [problem] * 2


@pytest.mark.parametrize(
    ("sink", "more"),
    [("Spark's own", 1), ("aioproducer", -1), (EXACTLY_ONCE, -1), (EXACTLY_ONCE, MARKERS + 1)],
)
def test_rows_that_are_lost_or_there_twice(sink: str, more: int) -> None:
    found = report(GOOD, {sink: more}).problems()
    assert len(found) == 2
    assert f"{sink} wrote 1000 rows of 1000 B, and the topic ends at {1000 + more}" in found
