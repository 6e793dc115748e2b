"""``python -m benchmarks stalls``: that it measures what it says, not what comes out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.stress.stall_cases import CASES
from benchmarks.stress.stalls import Figures, Report
from tests.benchmarks.environments import ENVIRONMENT


def report(**callbacks: list[float]) -> Report:
    figures = [
        Figures(name, 7000, round_, took, 2 * took, 3 * took, "a callback")
        for name, rounds in callbacks.items()
        for round_, took in enumerate(rounds, start=1)
    ]
    return Report(ENVIRONMENT, 3, figures)


def test_a_callback_that_takes_too_long_in_most_rounds_is_a_problem() -> None:
    assert report(waiters=[4.0, 4.0, 500.0]).problems() == []
    (problem,) = report(waiters=[4.0, 6.0, 500.0]).problems()
    assert problem == "waiters: no callback takes more than 5 ms: it is 6.0 ms"


def test_stalls_of_the_bare_loop_are_no_problem() -> None:
    bare = report(**{"bare-tasks": [50.0]})
    assert bare.problems() == []
    assert "met" not in bare.tables()[-1]


def test_markdown() -> None:
    text = report(waiters=[1.0, 2.0, 4.0]).markdown()
    assert "| `waiters` | 7,000 |" in text
    assert "| 2.0 | 4.0 | 6.0 | met |" in text


def test_the_table_has_the_verdicts() -> None:
    lines = report(waiters=[5.0], senders=[5.1]).tables()
    assert "1 of 2 cases with aioproducer meet the target" in lines[0]
    assert lines[-2].endswith("| 5.0 | 10.0 | 15.0 | met |")
    assert lines[-1].endswith("| 5.1 | 10.2 | 15.3 | **not met** |")


def test_every_title_stands_alone() -> None:
    assert not [case.title for case in CASES if "the same" in case.title]


def test_every_case_is_run_and_written_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures.json"
    options = ["--share", "100", "--rounds", "1", "--json", str(figures)]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "stalls", *options])
    status = main()
    written = json.loads(figures.read_text())
    assert [(one["case"], one["size"]) for one in written["figures"]] == [
        (case.name, case.size // 100) for case in CASES
    ]
    assert status == ("### Problems" in capsys.readouterr().out)


def test_a_case_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "stalls", "--cases", "none"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert "--cases" in capsys.readouterr().err
