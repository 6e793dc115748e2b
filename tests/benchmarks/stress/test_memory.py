"""``python -m benchmarks memory``: what it calls a failure. ``test_memory_bound.py`` measures with the same code."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.stress import memory
from benchmarks.stress.memory import MIB, SENDERS, Cost, Held, Report, Run
from tests.benchmarks.environments import ENVIRONMENT

HELD = Held(34 * MIB, 40 * MIB, 12_000, 0)
GOOD = Report(
    ENVIRONMENT, 1000, 32, [Cost("BATCH_COST", 1500, 1536)], [Run(10, "await", HELD), Run(1000, "send", HELD)]
)


def test_good_figures_are_no_problem() -> None:
    assert GOOD.problems() == []
    assert "| 10 B | `await send` | 12,000 | 34.0 | 40.0 |" in GOOD.tables()
    assert "| `BATCH_COST` is enough | 1500 of 1536 B | met |" in GOOD.tables()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"peak": 41 * MIB}, "no peak is above what is allowed: it is most: 41.0 of 40.0 MiB"),
        ({"missing": -5}, "after `close` no memory is missing: it is 5 B"),
    ],
)
def test_what_is_held_that_should_not_be(change: dict[str, int], problem: str) -> None:
    runs = [*GOOD.runs, Run(10, "send", dataclasses.replace(HELD, **change))]
    assert dataclasses.replace(GOOD, runs=runs).problems() == [problem]


def test_a_constant_that_is_too_small() -> None:
    (problem,) = dataclasses.replace(GOOD, costs=[Cost("PARKED_COST", 647, 640)]).problems()
    assert problem == "`PARKED_COST` is enough: it is 647 of 640 B"


def test_every_sender_is_run_and_written_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    monkeypatch.setattr(memory, "batch_cost", lambda: 1)
    options = ["--senders", "2", "--buffer", "1", "--sizes", "1000", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "memory", *options])
    assert main() == 0
    runs = json.loads(file.read_text())["runs"]
    assert [(run["size"], run["sender"]) for run in runs] == [(1000, sender) for sender in SENDERS]
    assert all(run["held"]["records"] > 0 for run in runs)
    assert "not met" not in capsys.readouterr().out
