from __future__ import annotations

import asyncio

import pytest

from benchmarks.harness.heartbeat import INTERVAL, Heartbeat


async def test_a_stall_counts_for_every_moment_it_covers(monkeypatch: pytest.MonkeyPatch) -> None:
    now = cpu = 0.0
    pauses = iter([INTERVAL, 3.5 * INTERVAL])

    async def sleep(delay: float) -> None:
        nonlocal now, cpu
        pause = next(pauses, None)
        if pause is None:
            raise asyncio.CancelledError
        now += pause
        cpu += pause / 2

    heart = Heartbeat()
    monkeypatch.setattr("benchmarks.harness.heartbeat.time.perf_counter", lambda: now)
    monkeypatch.setattr("benchmarks.harness.heartbeat.time.thread_time", lambda: cpu)
    monkeypatch.setattr("benchmarks.harness.heartbeat.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await heart._beat()
    assert heart.late == pytest.approx([0.0, 2.5 * INTERVAL, 1.5 * INTERVAL, 0.5 * INTERVAL])
    assert heart.computing == pytest.approx([0.0, 0.75 * INTERVAL, 0.0, 0.0])
    assert heart.stall == pytest.approx(2.5 * INTERVAL)
