"""The command: which seeds run, the output for a failing seed, the exit status."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO

import pytest

from aioproducer.tasks.supervisor import Supervisor
from aioproducer.testing.simulate import Asked, main, narrowed, replay_command
from aioproducer.testing.simulation import KINDS, simulate
from aioproducer.testing.simulation.faults.chaos import Chaos

pytestmark = pytest.mark.once


def run(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    return main(arguments, out), out.getvalue()


@pytest.fixture
def tasks_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug that every seed shows."""

    async def stop(self: Supervisor) -> None:
        pass

    monkeypatch.setattr(Supervisor, "stop", stop)
    monkeypatch.setattr(Supervisor, "cancel_all", lambda self: None)


@pytest.fixture
def leaders_may_not_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug that shows only in seeds whose leaders move."""

    async def move(self: Chaos) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Chaos, "_move", move)


def first_seed_with(kind: str) -> int:
    return next(seed for seed in range(100) if simulate(seed).scenario.rates.get(kind, 0.0) > 0.01)


def test_seeds_that_keep_every_promise() -> None:
    status, said = run("--seeds", "3")
    assert status == 0
    assert re.fullmatch(
        r"3 seeds from 0, 0 failed: \d+ records, \d+ acknowledged, \d+ transactions, \d+ committed, "
        r"\d+ simulated seconds in \d+\.\d\n",
        said,
    )


def test_by_default_one_seed_runs() -> None:
    assert run()[1].startswith("1 seeds from 0, 0 failed: ")


def test_the_first_seed_may_be_any() -> None:
    assert run("--seed", "17", "--seeds", "2")[1].startswith("2 seeds from 17, 0 failed: ")


@pytest.mark.usefixtures("tasks_are_left")
def test_a_seed_that_fails_is_printed_with_the_command_that_replays_it() -> None:
    status, said = run("--seed", "4", "--seeds", "2")
    assert status == 1
    lines = said.splitlines()
    assert lines[0] == "seed 4 FAILED:"
    assert "  no task is left: " in said
    assert "  replay: python -m aioproducer.testing.simulate --seed 4 -v" in lines
    assert "  replay: python -m aioproducer.testing.simulate --seed 5 -v" in lines
    assert lines[-1].startswith("2 seeds from 4, 2 failed: ")


@pytest.mark.usefixtures("tasks_are_left")
def test_a_run_may_stop_at_the_first_failure() -> None:
    status, said = run("--seeds", "50", "--fail-after", "1")
    assert status == 1
    assert said.count("FAILED") == 1
    assert said.splitlines()[-1].startswith("1 seeds from 0, 1 failed: ")


@pytest.mark.usefixtures("leaders_may_not_move")
def test_a_failure_is_narrowed_to_the_faults_it_needs() -> None:
    seed = first_seed_with("leaders")
    assert narrowed(seed, Asked()).kinds == ("leaders",)
    status, said = run("--seed", str(seed), "--narrow")
    assert status == 1
    assert f"  replay: python -m aioproducer.testing.simulate --seed {seed} --faults leaders -v\n" in said


@pytest.mark.usefixtures("leaders_may_not_move")
def test_faults_may_be_chosen_and_left_out() -> None:
    seed = str(first_seed_with("leaders"))
    assert run("--seed", seed, "--faults", "leaders,reset")[0] == 1
    assert run("--seed", seed, "--faults", "reset, late")[0] == 0
    assert run("--seed", seed, "--faults=-leaders")[0] == 0
    assert run("--seed", seed, "--faults", "none")[0] == 0


def test_a_fault_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        run("--faults", "reset,rain")
    assert exit.value.code == 2
    assert "there is no fault rain; there are refuse, hang, " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "said"),
    [("reset=much", "the rate of reset must be a number, not 'much'"), ("reset=2", "more than 0 and at most 1, not 2")],
)
def test_a_rate_that_is_none(value: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        run("--faults", value)
    assert exit.value.code == 2
    assert said in capsys.readouterr().err


def test_a_kind_with_a_rate_strikes_with_every_seed() -> None:
    said = run("--seeds", "5", "--faults", "reset=0.25", "-v")[1]
    assert said.count("s: reset 0.250\n") == 5


def test_ample_time_may_be_requested() -> None:
    said = run("--seeds", "5", "--ample", "--faults", "late=0.1", "-v")[1]
    assert said.count("faults pass and there is ample time\n") == 5


def test_the_replay_command_names_faults_only_if_some_were_left_out() -> None:
    assert replay_command(3, Asked()) == "python -m aioproducer.testing.simulate --seed 3 -v"
    assert replay_command(3, Asked(("late", "reset"))).endswith("--seed 3 --faults late,reset -v")
    assert replay_command(3, Asked(())).endswith("--seed 3 --faults none -v")


def test_the_replay_command_gives_the_rates_that_were_given() -> None:
    rates = {"reset": 0.03, "lost": 0.5}
    assert replay_command(3, Asked(("late", "reset"), rates, ample=True)).endswith(
        "--seed 3 --ample --faults late,reset=0.03 -v"
    )
    assert replay_command(3, Asked(tuple(KINDS), {"reset": 0.03})).count("reset=0.03") == 1


def test_a_rate_goes_with_its_kind() -> None:
    asked = Asked(("late", "reset"), {"reset": 0.03}).without("reset")
    assert asked == Asked(("late",), {})


def test_a_replay_prints_the_scenario_and_the_trace() -> None:
    report = simulate(6, keep_trace=True)
    said = run("--seed", "6", "-v")[1].splitlines()
    assert said[:-1] == [*report.scenario.describe(), *report.trace, f"trace {report.digest}"]


def test_as_a_command_and_in_more_than_one_process() -> None:
    command = [sys.executable, "-m", "aioproducer.testing.simulate", "--seeds", "12", "--jobs", "2"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50, env=dict(os.environ))
    assert (finished.returncode, finished.stderr) == (0, "")
    alone = run("--seeds", "12")[1]
    assert finished.stdout.rpartition(" in ")[0] == alone.rpartition(" in ")[0]
