from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from aioproducer import HealthFinding, HealthThresholds, KafkaProducer, MetricName, MetricsSnapshot, Severity
from aioproducer.configs.producer_config import producer_config
from aioproducer.metrics import ProducerMetrics
from aioproducer.producer.diagnosis.health import findings
from tests.support.producing import make_producer
from tests.support.scripted_broker import ScriptedCluster

CONFIG = producer_config({"bootstrap.servers": "b:1", "buffer.memory": 1_000_000, "parked.memory": 1000})
WELL = {"buffer-available-bytes": 1_000_000.0, "request-rate": 1000.0}


def snapshot(**changes: float) -> MetricsSnapshot:
    """A producer without figures, save for these."""
    values = dict(ProducerMetrics("me").snapshot(0.0))
    for name, value in {**WELL, **{name.replace("_", "-"): value for name, value in changes.items()}}.items():
        full = MetricName(name, "producer-metrics", (("client-id", "me"),))
        assert full in values
        values[full] = value
    return MetricsSnapshot(values)


def found(*, thresholds: HealthThresholds | None = None, **changes: float) -> list[HealthFinding]:
    return findings(snapshot(**changes), CONFIG, thresholds)


@pytest.mark.parametrize("figure", ["batch_size_avg", "records_per_request_avg"])
def test_a_hint_to_linger_longer_fits_the_pipeline(figure: str) -> None:
    (finding,) = findings(snapshot(**{figure: 1.0}), CONFIG)
    assert "set linger.ms" in finding.what_to_do
    fixed = dataclasses.replace(CONFIG, pipeline="fixed", linger_ms=7)
    (finding,) = findings(snapshot(**{figure: 1.0}), fixed)
    assert "raise linger.ms (7)" in finding.what_to_do


def test_a_healthy_producer_has_no_findings() -> None:
    assert found() == []
    assert KafkaProducer(bootstrap_servers="b:1").health() == []


@pytest.mark.parametrize(
    ("metric", "well", "ill", "threshold", "severity"),
    [
        ("buffer-available-bytes", 100_000, 99_999, 100_000, Severity.WARNING),
        ("buffer-exhausted-rate", 0, 0.001, 0, Severity.CRITICAL),
        ("record-error-rate", 0, 0.001, 0, Severity.CRITICAL),
        ("producer-failed", 0, 1, 0, Severity.CRITICAL),
        ("request-latency-avg", 15_000, 15_001, 15_000, Severity.WARNING),
        ("batch-size-avg", 4096, 4095, 4096, Severity.HINT),
        ("records-per-request-avg", 2, 1.9, 2, Severity.HINT),
        ("parked-bytes", 500, 501, 500, Severity.WARNING),
        ("unreachable-age", math.nan, 0, 0, Severity.WARNING),
        ("unanswered-age", 15, 15.1, 15, Severity.WARNING),
    ],
)
def test_each_metric_has_its_threshold(
    metric: str, well: float, ill: float, threshold: float, severity: Severity
) -> None:
    name = metric.replace("-", "_")
    assert findings(snapshot(**{name: well}), CONFIG) == []
    (finding,) = findings(snapshot(**{name: ill}), CONFIG)
    assert (finding.metric, finding.value, finding.threshold, finding.severity) == (metric, ill, threshold, severity)
    assert finding.what_to_do
    assert str(finding).startswith(f"{severity.name}: {metric} is {ill:g} (threshold {threshold:g}): ")


def test_the_worst_comes_first() -> None:
    severities = [
        finding.severity
        for finding in found(batch_size_avg=1, buffer_available_bytes=0, record_error_rate=1, request_latency_avg=1e6)
    ]
    assert severities == [Severity.CRITICAL, Severity.WARNING, Severity.WARNING, Severity.HINT]


def test_small_batches_of_few_requests_are_nothing_to_care_about() -> None:
    small: dict[str, Any] = {"batch_size_avg": 1, "records_per_request_avg": 1}
    assert found(**small, request_rate=100) == []
    assert len(found(**small, request_rate=101)) == 2
    assert len(found(**small, request_rate=2, thresholds=HealthThresholds(busy_requests=1))) == 2


def test_the_threshold_of_request_latency_is_the_users_to_set() -> None:
    thresholds = HealthThresholds(request_latency_ms=200)
    assert found(request_latency_avg=200, thresholds=thresholds) == []
    (finding,) = found(request_latency_avg=201, thresholds=thresholds)
    assert finding.threshold == 200


def test_the_threshold_of_unanswered_requests_is_the_users_to_set() -> None:
    thresholds = HealthThresholds(unanswered_seconds=2)
    assert found(unanswered_age=2, thresholds=thresholds) == []
    (finding,) = found(unanswered_age=2.1, thresholds=thresholds)
    assert finding.threshold == 2


def test_the_threshold_of_unreachable_brokers_is_the_users_to_set() -> None:
    thresholds = HealthThresholds(unreachable_seconds=10)
    assert found(unreachable_age=9.9, thresholds=thresholds) == []
    (finding,) = found(unreachable_age=10, thresholds=thresholds)
    assert (finding.value, finding.threshold) == (10, 10)


def test_the_slowest_of_several_brokers_is_named() -> None:
    metrics = ProducerMetrics(buffer_memory=1_000_000)
    for node, latency in ((1, 20_000.0), (2, 90_000.0)):
        metrics.network.node(node)
        metrics.request_answered(node, latency, 0.0, 1.0)
    (finding,) = findings(metrics.snapshot(1.0), CONFIG)
    assert "(node-2 is the slowest: 90000 ms)" in finding.what_to_do


async def test_a_producer_judges_itself() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, max_request_size=1000) as producer:
            _ = await producer.send("t", b"v")
            assert producer.health() == []
            assert producer.send("t", bytes(2000)).exception() is not None
            assert [finding.metric for finding in producer.health()] == ["record-error-rate"]
            strict = HealthThresholds(request_latency_ms=0.0)
            assert len(producer.health(strict)) == 2
