from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from benchmarks.works import ways


async def test_tasks_send_every_record_and_count_failures() -> None:
    sent: list[bytes] = []

    async def send(topic: str, value: bytes) -> None:
        sent.append(value)
        if len(sent) % 3 == 0:
            raise OSError("refused")

    failures, latencies = await ways.tasks(send, "topic", b"value", records=2007, count=100)
    assert failures == Counter(OSError=669)
    assert len(sent) == 2007
    assert 0 < len(latencies) <= 200


async def test_one_task_times_each_record() -> None:
    async def send(topic: str, value: bytes) -> None: ...

    _, latencies = await ways.tasks(send, "topic", b"value", records=10, count=1)
    assert len(latencies) == 10


async def test_paced_latency_counts_from_when_a_record_was_due() -> None:
    timed, sent = [], 0

    def send() -> None:
        nonlocal sent
        sent += 1

    def send_timed(acknowledged) -> None:
        timed.append(acknowledged)
        acknowledged()

    latencies = await ways.paced(send, send_timed, asyncio.sleep, records=200, rate=100_000.0)
    assert sent + len(timed) == 200
    assert len(latencies) == len(timed) == 200 // ways.SAMPLE
    assert min(latencies) >= 0


async def test_a_producer_that_holds_its_caller_up_does_not_hide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0

    def send_timed(acknowledged) -> None:
        nonlocal now
        if now == 100.0:
            now += 1.0  # the first record holds up all that are due within a second
        acknowledged()

    async def pause(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("time.perf_counter", lambda: now)
    rate = 4.0 * ways.SAMPLE
    latencies = await ways.paced(lambda: None, send_timed, pause, records=8 * ways.SAMPLE, rate=rate)
    assert latencies[:5] == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0], abs=2 * ways.TICK)
    assert latencies[5:] == pytest.approx([0.0] * 3, abs=2 * ways.TICK)
