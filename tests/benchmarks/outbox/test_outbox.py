"""What the report of the outbox comes to; tests/outbox/test_benchmark.py has a turn of each way."""

from __future__ import annotations

import pytest

from benchmarks.harness.environment import Environment
from benchmarks.outbox.outbox import Report, Turn, parse_arguments
from benchmarks.outbox.relaying import BACKLOG, POLLER, RELAY, Acknowledged


def report(*turns: Turn) -> Report:
    return Report(Environment.now(loop="asyncio", broker="none"), 1000, 100, 5, 50, turns)


def test_medians_and_verdicts() -> None:
    made = report(
        Turn(RELAY, 1, 30_000.0, 6.0, 20.0, 500, 0),
        Turn(POLLER, 1, 10_000.0, 30.0, 50.0, 500, 0),
        Turn(RELAY, 2, 40_000.0, 8.0, 30.0, 500, 0),
    )
    assert "| relay | 35,000 | 7.0 ms | 25.0 ms |" in made.markdown()
    assert "| poller | 10,000 | 30.0 ms | 50.0 ms |" in made.markdown()
    assert [(one.measured, one.met) for one in made.verdicts()] == [
        ("35000.00 (30000.00–40000.00)", True),
        ("7.00 (6.00–8.00)", True),
    ]
    assert made.problems() == []


def test_targets_that_are_missed_and_rows_that_the_relay_loses_are_problems() -> None:
    made = report(Turn(RELAY, 1, 10_000.0, 10.0, 20.0, 499, 1), Turn(POLLER, 1, 50_000.0, 1.0, 2.0, 490, 10))
    assert "| poller | 50,000 | 1.0 ms | 2.0 ms | 10 of 500 |" in made.markdown()
    assert made.problems() == [
        "relay, round 1: 1 of 500 rows were not acknowledged",
        "rows/s ≥ 20,000: it is 10000.00 (10000.00–10000.00)",
        "median delay < 10 ms: it is 10.00 (10.00–10.00)",
    ]


def test_the_backlog_is_told_apart_from_numbered_rows(capsys: pytest.CaptureFixture[str]) -> None:
    done = Acknowledged(3)
    done([BACKLOG + b"xx", BACKLOG])
    assert capsys.readouterr().out == ""
    done([BACKLOG, b"7:xx"])
    assert "rows_per_s" in capsys.readouterr().out
    assert list(done.times) == [7]


def test_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_arguments([]).on == [RELAY, POLLER]
    assert parse_arguments(["--on", "poller", "--rows", "5"]).rows == 5
    with pytest.raises(SystemExit):
        parse_arguments(["--on", "nobody"])
    assert "'nobody' is none of relay, poller" in capsys.readouterr().err
