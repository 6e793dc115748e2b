"""One seed is one schedule, and the seeds that CI runs have no violations."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import weakref
from dataclasses import replace
from typing import Any

import pytest

from aioproducer.testing.simulation import Report, SimulatedLoop, draw, play, simulate
from aioproducer.testing.simulation.scenario import Ending
from aioproducer.testing.simulation.users.workload import Work

SEEDS = range(10)
"""The seeds that every environment runs; the environment ``simulation`` runs many more."""


CALM = [scenario for scenario in map(draw, range(100)) if scenario.calm]


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    return [simulate(seed, keep_trace=True) for seed in SEEDS]


def test_the_first_seeds_keep_every_promise(reports: list[Report]) -> None:
    assert [report.violations for report in reports if not report.ok] == []


def test_a_seed_is_replayed_identically(reports: list[Report]) -> None:
    for first in reports:
        again = simulate(first.scenario.seed, keep_trace=True)
        assert again.trace == first.trace
        assert (again.digest, again.steps) == (first.digest, first.steps)


def test_seeds_differ(reports: list[Report]) -> None:
    assert len({report.digest for report in reports}) == len(SEEDS)


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_a_run_is_the_same_in_another_process_with_any_hash_seed(reports: list[Report], hash_seed: str) -> None:
    script = (
        "from aioproducer.testing.simulation import simulate\n"
        f"print(*(simulate(seed).digest for seed in range({len(SEEDS)})))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    finished = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True, timeout=50
    )
    assert finished.stdout.split() == [report.digest for report in reports]


def test_without_faults_everything_is_delivered() -> None:
    assert len(CALM) > 5
    reports = [play(scenario) for scenario in CALM]
    assert [report.violations for report in reports if not report.ok] == []
    # All except records that were too large, or exceeded the parked memory.
    assert sum(report.acknowledged for report in reports) > 0.7 * sum(report.records for report in reports)


def test_virtual_time_passes() -> None:
    assert sum(simulate(seed).virtual_seconds for seed in SEEDS) > 100


def test_the_trace_is_kept_on_demand(reports: list[Report]) -> None:
    assert all(report.trace for report in reports)
    assert simulate(0).trace == []
    assert simulate(0).digest == reports[0].digest


def test_nothing_of_a_run_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[weakref.ref[SimulatedLoop]] = []
    begin = SimulatedLoop.__init__

    def begin_watched(self: SimulatedLoop, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        loops.append(weakref.ref(self))

    monkeypatch.setattr(SimulatedLoop, "__init__", begin_watched)
    logger = logging.getLogger("aioproducer")
    before = (logger.propagate, logger.level, list(logger.handlers), gc.isenabled())
    assert simulate(0).ok
    assert (logger.propagate, logger.level, list(logger.handlers), gc.isenabled()) == before
    assert loops
    assert not any(loop() for loop in loops), "the loop is still there, as garbage or not"


# Problems that a run finds without an invariant


def test_a_hang_ends_the_run_and_names_the_waiting_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait(self: Work) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(Work, "run", wait)
    (violation,) = play(CALM[0]).violations
    assert violation.startswith("a wait never ends: ")
    assert "work 0: _Run._work (run.py:" in violation
    assert "wait (test_run.py:" in violation


def test_a_loop_that_spins_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def spin(self: Work) -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    monkeypatch.setattr(Work, "run", spin)
    (violation,) = play(CALM[0]).violations
    assert "something spins" in violation


def test_an_exception_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(self: Work) -> None:
        raise ZeroDivisionError("at work")

    monkeypatch.setattr(Work, "run", fail)
    report = play(CALM[0])
    assert "ZeroDivisionError: at work" in report.violations[0]
    assert report.violations[0].startswith("a run raises no unexpected error: ")


def test_an_exception_that_only_the_loop_hears_of_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail_later(self: Work) -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)

    monkeypatch.setattr(Work, "run", fail_later)
    assert any("ZeroDivisionError" in violation for violation in play(CALM[0]).violations)


def test_an_exception_that_is_only_logged_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    async def log(self: Work) -> None:
        try:
            raise ZeroDivisionError("logged")
        except ZeroDivisionError:
            logging.getLogger("aioproducer.tests").exception("it went wrong")

    monkeypatch.setattr(Work, "run", log)
    assert any("it went wrong" in violation for violation in play(CALM[0]).violations)


def test_a_task_that_is_left_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = []

    async def leave_one(self: Work) -> None:
        tasks.append(asyncio.create_task(asyncio.sleep(1e6), name="left behind"))

    monkeypatch.setattr(Work, "run", leave_one)
    violations = play(CALM[0]).violations
    assert any(violation.startswith("no task is left: ") and "left behind" in violation for violation in violations)
    assert any(violation.startswith("no timer is left: ") for violation in violations)


# CI


@pytest.mark.simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize("ending", list(Ending))
def test_every_ending_with_every_kind_of_fault(ending: Ending) -> None:
    for seed in range(20_000, 20_030):
        report = play(replace(draw(seed), ending=ending, calm=False, ample=False))
        assert report.ok, (seed, report.violations)
