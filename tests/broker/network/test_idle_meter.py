from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.network.idle_meter import IdleMeter


def test_a_resting_task_is_idle() -> None:
    meter = IdleMeter(100.0)
    assert meter.share(1, 100.0) == 1.0
    meter.rest(100.0)
    meter.work(103.0)
    assert meter.share(1, 104.0) == 0.75
    meter.rest(104.0)
    assert meter.share(1, 10_000.0) == 1.0


def test_several_tasks() -> None:
    meter = IdleMeter(0.0)
    for _ in range(4):
        meter.rest(0.0)
    meter.work(10.0)
    meter.work(10.0)
    assert meter.share(4, 20.0) == 0.75


def test_failures_older_than_a_minute_are_forgotten() -> None:
    meter = IdleMeter(0.0)
    meter.rest(0.0)
    meter.work(25.0)
    assert meter.share(1, 50.0) == 0.5
    assert meter.share(1, 65.0) == 0.0


def test_a_pool_without_tasks_counts_as_idle() -> None:
    assert IdleMeter(0.0).share(0, 10.0) == 1.0


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), min_size=1), st.floats(0, 100))
def test_against_a_naive_one(steps: list[tuple[float, bool]], last: float) -> None:
    meter, now, resting = IdleMeter(0.0), 0.0, False
    spans: list[tuple[float, float]] = []
    for pause, rests in steps:
        if resting:
            spans.append((now, now + pause))
        now += pause
        if rests != resting:
            (meter.rest if rests else meter.work)(now)
            resting = rests
    if resting:
        spans.append((now, now + last))
    now += last
    share = meter.share(1, now)
    start = max(meter._start - 30.0, 0.0) if meter._before is not None else meter._start
    idle = sum(max(end - max(begin, start), 0.0) for begin, end in spans)
    assert share == pytest.approx(idle / (now - start) if now > start else 1.0, abs=1e-6)
