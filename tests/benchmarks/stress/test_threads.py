"""``python -m benchmarks threads``: that every thread sends its records, and how rates are compared."""

from __future__ import annotations

import itertools
import json
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.harness.environment import free_threaded, gil_enabled
from benchmarks.stress import threads
from benchmarks.stress.threads import Moment, Report, Run, WrongRun, measure
from tests.benchmarks.environments import ENVIRONMENT


def report(*, free_threaded: bool = False, gil: bool = True) -> Report:
    rates = {(1, 1): 100.0, (1, 2): 200.0, (1, 3): 100.0, (2, 1): 150.0, (2, 2): 400.0, (2, 3): 190.0}
    runs = [Run(threads, round_, rate, 1.25) for (threads, round_), rate in rates.items()]
    return Report(ENVIRONMENT, [1, 2], 3, free_threaded, gil, runs)


def test_rates_of_the_same_round_are_compared() -> None:
    assert str(report().ratio(2)) == "1.90 (1.50–2.00)"
    assert str(report().ratio(1)) == "1.00 (1.00–1.00)"
    text = report().markdown()
    assert "| threads | records/s | ÷ 1 thread | cores busy | CPU µs a record |" in text
    assert "| 2 | 190 | 1.90 (1.50–2.00) | 1.25 | 6578.95 |" in text


@pytest.mark.parametrize(("free_threaded", "gil", "said"), [(False, True, "on"), (True, False, "off")])
def test_a_gil_that_belongs_there_is_no_problem(free_threaded: bool, gil: bool, said: str) -> None:
    one = report(free_threaded=free_threaded, gil=gil)
    assert one.problems() == []
    assert f"the GIL {said};" in one.markdown()


def test_a_gil_that_was_switched_on_is_a_problem() -> None:
    (problem,) = report(free_threaded=True, gil=True).problems()
    assert "free-threaded, but its GIL is on" in problem


def test_every_thread_sends_and_all_is_written_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures.json"
    options = ["--threads", "1,3", "--records", "200", "--rounds", "2", "--json", str(figures)]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "threads", *options])
    status = main()
    written = json.loads(figures.read_text())
    assert [(run["round"], run["threads"]) for run in written["runs"]] == [(1, 1), (1, 3), (2, 1), (2, 3)]
    assert all(run["records_per_s"] > 0 and run["cores"] > 0 for run in written["runs"])
    assert (written["free_threaded"], written["gil"]) == (free_threaded(), gil_enabled())
    shown = capsys.readouterr().out
    assert "| 3 | " in shown
    assert status == ("### Problems" in shown)


def test_a_thread_that_fails_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = itertools.count()

    async def send_all(servers: str, records: int, start: threading.Barrier) -> Moment:
        if next(turns) == 1:
            raise WrongRun("one record failed")
        start.wait()
        return Moment.now()

    monkeypatch.setattr(threads, "send_all", send_all)
    with pytest.raises(WrongRun, match="one record failed"):
        measure(3, 1, "nowhere", 1, "asyncio")


def test_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "threads", "--threads", "1,0"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert "--threads" in capsys.readouterr().err
