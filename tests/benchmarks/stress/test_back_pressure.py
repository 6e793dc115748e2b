"""``python -m benchmarks back-pressure``: that it counts every task, and judges what they end with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.stress.back_pressure import CASES, Figures, Report
from tests.benchmarks.environments import ENVIRONMENT


def report(**ends: dict[str, int]) -> Report:
    return Report(ENVIRONMENT, [Figures(case, 10, ended, 40.0, 60.0, 1.5) for case, ended in ends.items()])


def test_all_is_well_if_every_task_had_its_record_delivered_or_was_cancelled() -> None:
    delivered = {"RecordMetadata": 10}
    well = report(little=delivered, starting=delivered, many=delivered, cancelled={"CancelledError": 5, "pending": 5})
    assert well.problems() == []
    assert "| `many` | 10 | 1,000 B, `buffer.memory` of 32 MiB | 40 | 60 | 2,097,152 | 1.5 |" in well.tables()
    assert "| `many`: all are delivered | 10 delivered | met |" in well.tables()


@pytest.mark.parametrize("ends", [{"RecordMetadata": 9, "BufferExhaustedException": 1}, {"RecordMetadata": 9}, {}])
def test_a_record_that_failed_or_is_missing_is_a_problem(ends: dict[str, int]) -> None:
    (problem,) = report(many=ends).problems()
    assert problem.startswith("`many`: all are delivered: it is ")
    assert all(f"{count} " in problem for count in ends.values())


def test_a_task_that_was_not_cancelled_may_not_end_with_the_others() -> None:
    assert len(report(cancelled={"CancelledError": 6, "pending": 4}).problems()) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.timeout(120)
def test_it_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks", "back-pressure", "--share", "400", "--json", str(file)])
    assert main() == 0
    assert [one["case"] for one in json.loads(file.read_text())["figures"]] == list(CASES)
    assert "not met" not in capsys.readouterr().out
