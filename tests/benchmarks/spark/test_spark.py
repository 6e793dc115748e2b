"""``python -m benchmarks spark``: what it calls a failure. The measuring itself needs real Kafka, Spark and minutes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from benchmarks.spark.spark import IN_SMALL, LARGE, PARTITIONS, SMALL, Report, Shape, Written
from benchmarks.spark.spark_process import AT_LEAST_ONCE, CORES, EMPTY, EXACTLY_ONCE, OWN, SINKS, TUNED
from tests.benchmarks.environments import ENVIRONMENT

SHAPES = (Shape(1000, 1000, CORES), Shape(3000, 100, CORES))
GOOD = {OWN: 10.0, TUNED: 9.0, AT_LEAST_ONCE: 8.0, EXACTLY_ONCE: 9.0}
GOOD_SMALL = {EMPTY: 1.0, AT_LEAST_ONCE: 1.5, EXACTLY_ONCE: 7.0}


def report(
    seconds: Mapping[str, float], more: Mapping[str, int] | None = None, *, small: Mapping[str, float] = GOOD_SMALL
) -> Report:
    def written(sink: str, shape: Shape, taken: float) -> Written:
        rows = 0 if sink == EMPTY else shape.rows
        return Written(sink, *shape, taken, 2 * taken, rows + (more or {}).get(sink, 0))

    large = [written(sink, shape, taken) for sink, taken in seconds.items() for shape in SHAPES]
    return Report(ENVIRONMENT, 1, [*large, *(written(sink, SMALL, taken) for sink, taken in small.items())])


def test_good_figures_are_no_problem() -> None:
    good = report(GOOD, {EXACTLY_ONCE: CORES * PARTITIONS})
    assert good.problems() == []
    assert tuple(GOOD) == tuple(SINKS)
    assert tuple(GOOD_SMALL) == IN_SMALL
    text = good.markdown()
    assert "| 3,000 rows of 100 B, 2 tasks | rows/s | × Spark's own | × tuned | CPU µs a row |" in text
    assert "| aioproducer | 375 | 1.25 | 1.12 | 5333.33 |" in text
    assert "| 2,000 rows of 100 B, 200 tasks | seconds | × an empty function |" in text
    assert "| aioproducer | 1.50 | 1.50 |" in text
    assert "| aioproducer ÷ Spark's own, tuned, rows/s, 3,000 rows of 100 B, 2 tasks: ≥ 1.1 | 1.12 | met |" in text
    assert text.index("of 100 B") < text.index("of 1000 B")


def test_the_median_counts() -> None:
    shape = LARGE[0]
    runs = [Written(AT_LEAST_ONCE, *shape, seconds, 10 - seconds, shape.rows) for seconds in (1.0, 2.0, 9.0)]
    made = Report(ENVIRONMENT, 3, runs)
    assert (made.seconds(AT_LEAST_ONCE, shape), made.cpu_seconds(AT_LEAST_ONCE, shape)) == (2.0, 8.0)


@pytest.mark.parametrize(
    ("changed", "targets"),
    [
        ({AT_LEAST_ONCE: 8.3}, ["aioproducer ÷ Spark's own, tuned, rows/s", "1.08"]),
        ({AT_LEAST_ONCE: 8.4, TUNED: 9.3}, ["aioproducer ÷ Spark's own, rows/s", "1.19"]),
        ({EXACTLY_ONCE: 9.1}, ["aioproducer, exactly-once ÷ Spark's own, tuned, rows/s", "0.99"]),
    ],
)
def test_a_sink_that_is_too_slow(changed: Mapping[str, float], targets: list[str]) -> None:
    found = report({**GOOD, **changed}).problems()
    what, ratio = targets
    assert len(found) == 2, "one for each shape"
    for problem, shape in zip(found, sorted(SHAPES, key=lambda shape: shape.size), strict=True):
        assert problem.startswith(f"{what}, {shape}: ≥ ")
        assert problem.endswith(f": it is {ratio}")


def test_small_tasks_that_are_too_slow() -> None:
    (problem,) = report(GOOD, small={**GOOD_SMALL, AT_LEAST_ONCE: 1.6}).problems()
    assert problem == f"aioproducer ÷ an empty function, seconds, {SMALL}: ≤ 1.5: it is 1.60"


@pytest.mark.parametrize(
    ("sink", "more"),
    [(OWN, 1), (TUNED, -1), (AT_LEAST_ONCE, -1), (EXACTLY_ONCE, -1), (EXACTLY_ONCE, SMALL.tasks * PARTITIONS + 1)],
)
def test_rows_that_are_lost_or_there_twice(sink: str, more: int) -> None:
    found = report(GOOD, {sink: more}).problems()
    assert len(found) == 2 + (sink in IN_SMALL)
    assert f"{sink} wrote 1,000 rows of 1000 B, 2 tasks, and the topic ends at {1000 + more}" in found


def test_an_empty_function_writes_nothing() -> None:
    (problem,) = report(GOOD, {EMPTY: 1}).problems()
    assert problem.startswith(f"{EMPTY} wrote 2,000 rows")
