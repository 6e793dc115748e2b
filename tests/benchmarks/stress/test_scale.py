"""``python -m benchmarks scale``: that it measures what it says, not what comes out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.stress.scale import LOADS, Figures, Refresh, Report
from tests.benchmarks.environments import ENVIRONMENT


def report(**costs: list[float]) -> Report:
    """Of one round; the loads that are not given cost 1 µs."""
    partitions = [1, 10, 100]
    figures = [
        Figures(load.name, number, 1, cost, 2.0)
        for load in LOADS
        for number, cost in zip(partitions, costs.get(load.name, [1.0, 1.0, 1.0]), strict=True)
    ]
    return Report(ENVIRONMENT, partitions, 1, figures, [Refresh(number, 1, 3.0, 4.0) for number in partitions])


def test_a_cost_that_grows_with_partitions_is_a_problem() -> None:
    assert report().problems() == []
    assert report(every=[9.0, 3.0, 4.5]).growth("every") == 1.5  # one partition alone is dearer: that is no growth
    assert report(every=[9.0, 3.0, 4.5]).problems() == []
    (problem,) = report(few=[1.0, 1.0, 1.6]).problems()
    assert problem == "`few`: with more partitions a record costs ≤ 1.5 ×: it is 1.60 ×"


def test_markdown() -> None:
    text = report(sticky=[1.0, 2.5, 1.0]).markdown()
    assert "| 10 | 2.50 (2 ms) | 1.00 (2 ms) |" in text
    assert "| `sticky`: with more partitions a record costs ≤ 1.5 × | 2.50 × | **not met** |" in text
    assert "| `few`: with more partitions a record costs ≤ 1.5 × | 1.00 × | met |" in text


def test_every_load_is_run_and_written_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures.json"
    options = ["--partitions", "1,3", "--records", "200", "--rounds", "1", "--json", str(figures)]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "scale", *options])
    status = main()
    written = json.loads(figures.read_text())
    assert [(f["load"], f["partitions"]) for f in written["figures"]] == [
        (load.name, partitions) for partitions in (1, 3) for load in LOADS
    ]
    assert all(f["cpu_us"] > 0 for f in written["figures"])
    assert [r["partitions"] for r in written["refreshes"]] == [1, 3]
    shown = capsys.readouterr().out
    assert status == ("not met" in shown)


def test_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "scale", "--partitions", "0"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert "--partitions" in capsys.readouterr().err
