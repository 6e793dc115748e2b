"""The report on the embedded broker, and what is let loose on it."""

from __future__ import annotations

import asyncio
import json

import pytest

from aioproducer.broker import EmbeddedCluster
from benchmarks.broker import broker
from benchmarks.broker.broker import Latency, Rate, Report
from benchmarks.broker.load import WARM_UP, latency
from benchmarks.broker.start import Start, start
from benchmarks.harness.environment import Environment


def report(embedded: float, p99_ms: float) -> Report:
    environment = Environment.now(loop="asyncio", broker="embedded")
    rates = [
        rate
        for number in (1, 2, 3)
        for rate in (Rate("mock", number, 100_000.0 * number), Rate("embedded", number, embedded * number))
    ]
    latencies = [Latency(number, 0.5, p99_ms, 9.0) for number in (1, 2, 3)]
    return Report(environment, 10, 100, 1000, rates, latencies, [Start(1, 0.3, 46.0)])


@pytest.mark.parametrize(
    ("embedded", "p99_ms", "problems"),
    [
        (95_000, 1.5, []),
        (80_000, 1.5, ["records/s ÷ the mock cluster's ≥ 0.9: it is 0.80 (0.80–0.80)"]),
        (95_000, 2.5, ["p99 of a small request < 2 ms: it is 2.50 (2.50–2.50) ms"]),
    ],
)
def test_the_claims(embedded: float, p99_ms: float, problems: list[str]) -> None:
    made = report(embedded, p99_ms)
    assert made.problems() == problems
    text = made.markdown()
    assert f"| {2 * embedded:,.0f} ({embedded:,.0f}–{3 * embedded:,.0f}) |" in text
    assert text.count("**not met**") == len(problems)


async def test_small_requests_at_a_steady_rate(capsys: pytest.CaptureFixture[str]) -> None:
    async with EmbeddedCluster() as cluster:
        arguments = [cluster.bootstrap_servers, "20", "1000", "asyncio"]
        await asyncio.to_thread(latency, arguments)
        assert cluster.log("load").log_end_offset == 20
    p50, p99, most = json.loads(capsys.readouterr().out)
    assert 0 < p50 <= p99 <= most


@pytest.mark.parametrize("mock", [True, False])
async def test_a_plain_producer(mock: bool) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    async with EmbeddedCluster() as cluster:
        assert await broker.produce(None if mock else cluster.bootstrap_servers, 100, 10) > 0
        if not mock:
            assert cluster.log("load").log_end_offset == WARM_UP + 100


async def test_a_start() -> None:
    started = await start(1)
    assert started.seconds > 0
    assert started.peak_mib is None or 10 < started.peak_mib < broker.PEAK_MIB
