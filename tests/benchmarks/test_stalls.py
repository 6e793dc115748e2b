"""``python -m benchmarks stalls``: that it measures what it says, not what comes out."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.environment import Environment
from benchmarks.measured_loop import Held, MeasuredLoop
from benchmarks.stalls import CASES, Figures, Report

ENVIRONMENT = Environment("a day", "c0ffee", "a machine", "a system", 0.5, "Python", "asyncio", "a broker")


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def measured(*callbacks: float, own: float = 0.0) -> Held:
    """What is held by callbacks of so many seconds that run in one turn, and a step of the task that measures."""

    async def measure() -> Held:
        with loop.measured() as held:
            for seconds in callbacks:
                loop.call_soon(compute, seconds)
            await asyncio.sleep(0)
            compute(own)
            await asyncio.sleep(0)
        loop.call_soon(compute, 0.5)
        await asyncio.sleep(0)
        return held

    loop = MeasuredLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(measure())


def test_a_callback_and_a_turn_are_measured_without_the_task_that_measures() -> None:
    held = measured(0.02, 0.06, 0.04, own=0.3)
    assert held.callbacks == 3
    assert 0.06 <= held.callback < held.turn
    assert 0.12 <= held.turn < 0.3
    assert "compute" in held.what


def test_the_garbage_collector_is_measured_apart() -> None:
    async def measure() -> Held:
        garbage = [[number] for number in range(300_000)]
        with loop.measured() as held:
            loop.call_soon(gc.collect)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        del garbage
        return held

    loop = MeasuredLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        held = runner.run(measure())
    assert held.callbacks == 1
    assert 0.0 <= held.callback < held.collector


def report(**callbacks: list[float]) -> Report:
    figures = [
        Figures(name, 7000, round_, took, 2 * took, 3 * took, "a callback")
        for name, rounds in callbacks.items()
        for round_, took in enumerate(rounds, start=1)
    ]
    return Report(ENVIRONMENT, 3, figures)


def test_a_callback_that_takes_too_long_in_most_rounds_is_a_problem() -> None:
    assert report(waiters=[9.0, 9.0, 500.0]).problems() == []
    (problem,) = report(waiters=[9.0, 11.0, 500.0]).problems()
    assert problem.startswith("waiters: a callback held the loop for 11.0 ms")


def test_what_is_only_there_to_be_compared_with_is_no_problem() -> None:
    assert report(**{"bare-tasks": [50.0]}).problems() == []


def test_markdown() -> None:
    text = report(waiters=[1.0, 2.0, 4.0]).markdown()
    assert "| `waiters` | 7,000 |" in text
    assert "| 2.0 | 4.0 | 6.0 |" in text


def test_every_case_is_run_and_written_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures.json"
    options = ["--share", "100", "--rounds", "1", "--json", str(figures)]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "stalls", *options])
    status = command.main()
    written = json.loads(figures.read_text())
    assert [(one["case"], one["size"]) for one in written["figures"]] == [
        (case.name, case.size // 100) for case in CASES
    ]
    assert status == ("### Problems" in capsys.readouterr().out)


def test_a_case_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "stalls", "--cases", "none"])
    with pytest.raises(SystemExit) as exit_:
        command.main()
    assert exit_.value.code == 2
    assert "--cases" in capsys.readouterr().err
