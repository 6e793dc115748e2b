"""Targets: which figures they are held against, and that they name what there is."""

from __future__ import annotations

import pytest

from benchmarks.clients import CLIENTS
from benchmarks.comparison.case import Case, Done
from benchmarks.comparison.figures import FIGURES
from benchmarks.comparison.targets import TARGETS, Target, judge
from benchmarks.harness.statistics import Spread
from benchmarks.works.run import Measurement
from benchmarks.works.works import WORKS


def a_case() -> Case:
    """Ours is twice as fast as theirs in the first round, three times in the second."""
    seconds = [("ours", 1, 1.0), ("theirs", 1, 2.0), ("ours", 2, 1.0), ("theirs", 2, 3.0)]
    stall = {"p99.9": 0.004, "max": 0.004}
    done = [Done(name, round_, Measurement(1, time, 1, 1, stall=stall)) for name, round_, time in seconds]
    return Case(WORKS["stream-100"], done)


@pytest.mark.parametrize(
    ("target", "measured", "text"),
    [
        (Target("stream-100", "ours", "speed", "theirs", at_least=2.5), Spread(2.5, 2.0, 3.0), "met"),
        (Target("stream-100", "ours", "speed", "theirs", at_least=2.6), Spread(2.5, 2.0, 3.0), "**not met**"),
        (Target("stream-100", "ours", "cpu", "theirs", at_most=1.0), Spread(1.0, 1.0, 1.0), "met"),
        (Target("stream-100", "ours", "cpu", "theirs", at_most=0.1, apart=True), Spread(0.0, 0.0, 0.0), "met"),
        (Target("stream-100", "ours", "together", "theirs", at_most=1.0), None, "not measured"),
        (Target("stream-100", "ours", "stall", at_most=3.9), Spread(4.0, 4.0, 4.0), "**not met**"),
        (Target("stream-100", "ours", "p50", "theirs", at_most=1.0), None, "not measured"),
        (Target("stream-100", "ours", "speed", "nobody", at_least=1.0), None, "not measured"),
        (Target("lz4", "ours", "speed", "theirs", at_least=1.0), None, "not measured"),
    ],
)
def test_verdicts(target: Target, measured: Spread | None, text: str) -> None:
    (verdict,) = judge([a_case()], [target])
    assert verdict.measured == measured
    assert verdict.text == text


def test_targets_say_what_they_are() -> None:
    assert Target("lz4", "a", "speed", "b", at_least=1.1).text == "a ÷ b, records/s: ≥ 1.1"
    assert Target("single", "a", "p50", "b", at_most=0.03, apart=True).text == "a − b, ack p50 ms: ≤ 0.03"
    assert Target("lz4", "a", "stall", at_most=8.0).text == "a, loop stall p99.9 ms: ≤ 8"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target.work} {target.text}")
def test_every_target_can_be_measured(target: Target) -> None:
    assert target.work in WORKS
    assert target.figure in FIGURES
    assert {target.client, target.against or target.client} <= CLIENTS.keys()
    assert (target.at_least is None) != (target.at_most is None)
