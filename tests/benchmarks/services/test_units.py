"""The report of units, and a small run of each way."""

from __future__ import annotations

import sys

import pytest

from aioproducer.broker import EmbeddedCluster
from benchmarks.harness.environment import Environment
from benchmarks.services import units
from benchmarks.services.speed import Run
from benchmarks.services.unit_clients import LOCK, PLAIN, SECOND_TOPIC, UNIT_CLIENTS, UNITS, WINDOWS
from benchmarks.services.units import Report, Turn
from tests.support.leaks import no_leaks as no_leaks

RATE = 500


def turn(way: str, round_: int, speed: float, commit_ms: float | None = None) -> Turn:
    run = Run(1, "default", way, round_, 10, speed, 20.0, 300.0, 300.0, [])
    return Turn(run, None, commit_ms, None if commit_ms is None else 50.0)


def turn_at_rate(way: str, round_: int, commit_ms: float) -> Turn:
    run = Run(1, "default", way, round_, 10, float(RATE), 20.0, 30.0, 300.0, [])
    return Turn(run, RATE, commit_ms, 5.0)


def test_ratios_are_of_the_same_round() -> None:
    turns = [turn(UNITS, 1, 2000.0, 15.0), turn(LOCK, 1, 100.0), turn(PLAIN, 1, 2500.0)]
    turns += [turn(UNITS, 2, 1000.0, 15.0), turn(LOCK, 2, 40.0), turn(PLAIN, 2, 1250.0)]
    turns += [turn_at_rate(UNITS, 1, 15.0), turn_at_rate(UNITS, 2, 15.0)]
    report = Report(Environment.now(loop="asyncio", broker="none"), 1000, 5, turns)
    assert [(one.measured, one.met) for one in report.verdicts()] == [
        ("22.50 (20.00–25.00)", True),
        ("0.80 (0.80–0.80)", True),
        ("1.00 (1.00–1.00)", True),
    ]
    assert report.problems() == []
    assert "| units | full | 1,500 | 20.0 ms | 300.0 ms | 300 µs | 15.0 ms | 50 |" in report.markdown()
    assert "| units | 500/s | 500 | 20.0 ms | 30.0 ms | 300 µs | 15.0 ms | 5 |" in report.markdown()


def test_a_target_that_is_missed_is_a_problem() -> None:
    turns = [turn(UNITS, 1, 1000.0), turn(LOCK, 1, 100.0), turn(PLAIN, 1, 2500.0), turn_at_rate(UNITS, 1, 10.0)]
    report = Report(Environment.now(loop="asyncio", broker="none"), 1000, 5, turns)
    assert len(report.problems()) == 3


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM that could be caught")
@pytest.mark.parametrize("rate", [None, 50])
@pytest.mark.parametrize("way", UNIT_CLIENTS)
async def test_a_turn(way: str, rate: int | None) -> None:
    async with EmbeddedCluster() as cluster:
        for topic in ("orders", SECOND_TOPIC):
            cluster.create_topic(topic, 3)
        done = await units.turn(way, 1, cluster.bootstrap_servers, 10, 1.0, rate)
    assert done.run.problems == []
    assert 0 < done.run.requests <= (100 if rate else 1e9)
    assert (done.commit_ms is not None) is (way in WINDOWS)
