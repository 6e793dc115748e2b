from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioproducer import KafkaError, KafkaProducer, Outcome
from aioproducer.broker import EmbeddedCluster
from aioproducer.cli import sending
from aioproducer.cli.sending import Latencies, Sending, Tally


class Failed:
    """Told what failed."""

    def __init__(self) -> None:
        self.reported: list[tuple[int, str, Outcome]] = []

    def __call__(self, origin: int, error: KafkaError, outcome: Outcome) -> None:
        self.reported.append((origin, type(error).__name__, outcome))


@pytest.fixture
async def producer() -> AsyncIterator[KafkaProducer]:
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("t", 2)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, max_request_size=1000) as producer:
            yield producer


async def test_delivered_records_are_counted(producer: KafkaProducer) -> None:
    failed = Failed()
    sending: Sending[int] = Sending(producer, "t", headers=[("h", b"x")], on_failed=failed)
    for number in range(200):
        assert await sending.send(number, b"value", b"key") is not None
    assert await sending.send(200, b"v", None) is not None
    await producer.flush()
    sending.settle()
    sending.settle()
    assert (sending.tally.delivered, sending.tally.delivered_bytes) == (201, 200 * 8 + 1)
    assert sending.tally.latencies.quantile(0.5) is not None
    assert sending.broken is None
    assert failed.reported == []


async def test_an_immediate_refusal_is_reported(producer: KafkaProducer) -> None:
    failed = Failed()
    sending: Sending[int] = Sending(producer, "t", on_failed=failed)
    assert await sending.send(1, bytes(2000), None) is None
    assert await sending.send(2, b"", None) is not None
    await producer.flush()
    sending.settle()
    assert sending.tally.delivered == 1
    assert failed.reported == [(1, "RecordTooLargeException", Outcome.NOT_SENT)]


async def test_a_later_failure_is_reported(producer: KafkaProducer) -> None:
    failed = Failed()
    sending: Sending[int] = Sending(producer, "t", partition=0, on_failed=failed)
    await producer.partitions_for("t")
    for number in range(3):
        assert await sending.send(number, b"", None) is not None
    await producer.close(0)
    sending.settle()
    assert sending.tally.delivered == 0
    assert [origin for origin, _, _ in failed.reported] == [0, 1, 2]
    assert await sending.send(3, b"", None) is None
    assert sending.broken is not None
    assert failed.reported[-1] == (3, "IllegalStateException", Outcome.NOT_SENT)


async def test_kept_records_are_bounded_by_those_under_way(
    producer: KafkaProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "SETTLE_FROM", 10)
    made: Sending[int] = Sending(producer, "t", on_failed=Failed())
    made._settle_at = 10
    for number in range(100):
        assert await made.send(number, b"", None) is not None
        await producer.flush()
        assert len(made._under_way) <= 10


def test_quantiles() -> None:
    latencies = Latencies()
    assert latencies.quantile(0.5) is None
    latencies._samples = [float(number) for number in reversed(range(100))]
    assert [latencies.quantile(share) for share in (0, 0.5, 0.99, 1)] == [0, 50, 99, 99]


async def test_there_are_never_too_many_samples(producer: KafkaProducer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Latencies, "FIRST_STRIDE", 2)
    monkeypatch.setattr(Latencies, "LIMIT", 10)
    latencies = Latencies()
    for _ in range(200):
        latencies.watch(await producer.enqueue("t", b""))
    await producer.flush()
    assert 5 <= len(latencies._samples) <= 10
    assert latencies._stride > 2


def test_failures_are_grouped_by_cause_and_outcome() -> None:
    tally = Tally()
    tally.add_failure("A", Outcome.NOT_SENT, "first")
    tally.add_failure("A", Outcome.NOT_SENT, "second")
    tally.add_failure("A", Outcome.UNKNOWN, "third")
    assert tally.failed == 3
    assert [(group.count, group.outcome, group.example) for group in tally.failures.values()] == [
        (2, Outcome.NOT_SENT, "first"),
        (1, Outcome.UNKNOWN, "third"),
    ]
