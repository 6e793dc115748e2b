"""``python -m benchmarks imports``."""

from __future__ import annotations

from benchmarks.harness.environment import Environment
from benchmarks.stress.imports import MADE, OURS, Report, Run, measure

ENVIRONMENT = Environment.now(loop="asyncio", broker="none")


async def test_an_import_takes_time_and_memory() -> None:
    report = await measure(1)
    ours = next(run for run in report.runs if run.module == OURS)
    assert ours.ms > 0
    assert ours.mib > 0
    assert ours.modules > 100
    made = next(run for run in report.runs if run.module == MADE)
    assert made.modules > ours.modules
    assert "| `from aioproducer import KafkaProducer` | " in report.markdown()


def test_the_targets_are_of_the_medians() -> None:
    runs = [Run(OURS, number, ms, mib, 400) for number, (ms, mib) in enumerate([(500, 90), (59, 21), (50, 10)])]
    report = Report(ENVIRONMENT, 3, runs)
    assert [verdict.met for verdict in report.verdicts()] == [True, False]
    assert report.problems() == ["memory ≤ 20 MiB: it is 21.0 MiB"]
    assert "| 59 ms | 21.0 MiB | 400 |" in report.markdown()
