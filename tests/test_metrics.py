from __future__ import annotations

from typing import Any

import pytest

from aioproducer.metrics import ProducerMetrics


def snapshot(metrics: ProducerMetrics, **more: int) -> Any:
    return metrics.snapshot(**{"buffer_total": 0, "buffer_available": 0, "parked": 0, "parked_failed": 0, **more})


def test_without_samples_everything_is_zero() -> None:
    assert set(snapshot(ProducerMetrics()).values()) == {0}


def test_counts_and_averages() -> None:
    metrics = ProducerMetrics()
    metrics.batch_sent(10, 1000, 0.5)
    metrics.batch_sent(20, 3000, 0.1)
    metrics.requests += 1
    metrics.request_answered(0.25)
    metrics.record_retries += 30
    metrics.record_errors += 3
    found = snapshot(metrics, buffer_total=100, buffer_available=60, parked=7, parked_failed=2)
    assert found["record-send-total"] == 30
    assert found["record-error-total"] == 5
    assert found["record-retry-total"] == 30
    assert found["batch-total"] == 2
    assert found["byte-total"] == 4000
    assert found["batch-size-avg"] == 2000
    assert found["records-per-batch-avg"] == 15
    assert found["records-per-request-avg"] == 30
    assert found["record-queue-time-avg"] == pytest.approx(300)
    assert found["record-queue-time-max"] == pytest.approx(500)
    assert found["request-total"] == 1
    assert found["request-latency-avg"] == found["request-latency-max"] == pytest.approx(250)
    assert (found["buffer-total-bytes"], found["buffer-available-bytes"], found["parked-bytes"]) == (100, 60, 7)


def test_a_snapshot_stays_as_it_was_taken() -> None:
    metrics = ProducerMetrics()
    before = snapshot(metrics)
    metrics.batch_sent(1, 1, 1.0)
    assert before["record-send-total"] == 0
    with pytest.raises(TypeError):
        before["record-send-total"] = 5
