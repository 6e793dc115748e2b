from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from aioproducer.metrics import MetricName, ProducerMetrics
from aioproducer.metrics.producer_metrics import Gauges
from aioproducer.metrics.registry import RecordingLevel
from aioproducer.metrics.topic_metrics import STEP
from tests.support.exhaust import exhaust

BATCH: dict[str, Any] = {"records": 10, "size": 600, "uncompressed": 1000, "largest": 90, "queued_ms": 5.0}


def test_a_new_producer_has_every_metric_and_no_figures() -> None:
    metrics = ProducerMetrics("me", buffer_memory=1000)
    found = metrics.snapshot(0.0)
    assert found["buffer-total-bytes"] == found["buffer-available-bytes"] == 1000
    rest = {name.name: value for name, value in found.items() if name.name != "count" and "buffer-" not in name.name}
    assert {name for name, value in rest.items() if math.isnan(value)} == {
        name for name in rest if name.endswith(("-avg", "-max", "metadata-age", "unreachable-age", "unanswered-age"))
    }
    assert {value for value in rest.values() if not math.isnan(value)} == {0.0}
    assert {name.tags for name in found} == {(("client-id", "me"),)}


def test_batches_and_requests() -> None:
    metrics = ProducerMetrics()
    metrics.batch_sent("a", **BATCH, now=1.0)
    metrics.batch_sent("b", **{**BATCH, "records": 20, "size": 200, "largest": 100, "queued_ms": 15.0}, now=1.0)
    metrics.request_sent(30, 1.0)
    metrics.request_answered(0, 250.0, 40.0, 2.0)
    metrics.batch_delivered(10, 1.5, 2.0)
    found = metrics.snapshot(2.0)
    assert (found["batch-size-avg"], found["batch-size-max"], found["batch-total"]) == (400, 600, 2)
    assert found["compression-rate-avg"] == pytest.approx(0.4)
    assert (found["record-queue-time-avg"], found["record-queue-time-max"]) == (10, 15)
    assert (found["record-size-avg"], found["record-size-max"]) == (95, 100)
    assert found["records-per-request-avg"] == 30
    assert (found["record-send-total"], found["record-delivered-total"]) == (30, 10)
    assert found["record-send-rate"] == pytest.approx(30 / 31)
    assert (found["request-latency-avg"], found["request-latency-max"]) == (250, 250)
    assert (found["produce-throttle-time-avg"], found["produce-throttle-time-max"]) == (40, 40)
    assert found.topic("a")["byte-total"] == 600
    assert found.topic("b")["record-send-total"] == 20
    assert found.topic("b")["compression-rate"] == pytest.approx(0.2)


def test_the_same_batches_by_bounds() -> None:
    metrics = ProducerMetrics("me")
    for size, created in ((256, 9.999), (257, 9.9), (5_000_000, -1000.0)):
        metrics.batch_sent("a", **{**BATCH, "size": size}, now=10.0)
        metrics.batch_delivered(10, created, 10.0)
    acknowledged, sizes = metrics.snapshot(10.0).distributions
    assert acknowledged.name == MetricName("batch-acknowledgement-seconds", "producer-metrics", (("client-id", "me"),))
    assert sizes.name.name == "batch-bytes"
    assert sizes.counts == [1, 2, 2, 2, 2, 2, 2, 2, 3], "each bound belongs to its bucket, and all that is smaller"
    assert sizes.sum == 256 + 257 + 5_000_000
    by_bound = dict(zip(acknowledged.bounds, acknowledged.counts, strict=False))
    assert (by_bound[0.0025], by_bound[0.1], by_bound[0.25], by_bound[120.0]) == (1, by_bound[0.1], 2, 2)
    assert acknowledged.counts[-1] == 3
    assert acknowledged.sum == pytest.approx(1010.101)


def test_retries_and_errors_count_in_all_and_for_topics_that_were_sent_to() -> None:
    metrics = ProducerMetrics()
    metrics.batch_sent("a", **BATCH, now=1.0)
    metrics.records_retried("a", 10, 2.0)
    metrics.records_failed("a", 4, 2.0)
    metrics.records_failed("never sent to", 3, 2.0)
    metrics.records_retried("never sent to", 1, 2.0)
    metrics.batch_split(2.0)
    metrics.buffer_exhausted(2.0)
    found = metrics.snapshot(2.0)
    assert (found["record-retry-total"], found["record-error-total"]) == (11, 7)
    assert (found["batch-split-total"], found["buffer-exhausted-total"]) == (1, 1)
    assert found.topic("a")["record-retry-total"] == 10
    assert found.topic("a")["record-error-total"] == 4
    assert len(found.topic("never sent to")) == 0


def test_an_overview_has_all_but_those_of_topics_and_partitions() -> None:
    metrics = ProducerMetrics()
    metrics.batch_sent("a", **BATCH, now=1.0)
    metrics.windows.show("a", 0, lambda now: 20.0, lambda now: 1.0)
    everything, overview = metrics.snapshot(2.0), metrics.overview(2.0)
    left_out = {name for name in everything if name.tag("topic") is not None}
    assert len(left_out) > 2
    assert set(overview) == set(everything) - left_out
    assert overview["batch-total"] == everything["batch-total"] == 1


def test_queue_times_per_topic_are_recorded_from_debug_on() -> None:
    for level, expected in ((RecordingLevel.INFO, math.nan), (RecordingLevel.DEBUG, 5.0), (RecordingLevel.TRACE, 5.0)):
        metrics = ProducerMetrics(level=level)
        metrics.batch_sent("a", **BATCH, now=1.0)
        found = metrics.snapshot(1.0)
        assert found["record-queue-time-avg"] == 5.0
        assert found.topic("a")["record-queue-time-avg"] == pytest.approx(expected, nan_ok=True)


def test_a_topic_that_is_forgotten_loses_its_metrics() -> None:
    metrics = ProducerMetrics()
    before = set(metrics.snapshot(0.0))
    for number in range(100):
        metrics.batch_sent(f"t{number}", **BATCH, now=1.0)
    exhaust(metrics.keeping_topics({"t7"}))
    assert {name.tag("topic") for name in set(metrics.snapshot(2.0)) - before} == {"t7"}
    exhaust(metrics.keeping_topics(()))
    assert set(metrics.snapshot(2.0)) == before
    metrics.batch_sent("t7", **BATCH, now=3.0)
    assert metrics.snapshot(3.0).topic("t7")["record-send-total"] == 10


def test_many_topics_are_forgotten_in_small_steps() -> None:
    metrics = ProducerMetrics()
    for number in range(100):
        metrics.use_topic(f"t{number}")
    counts = (len(metrics.registry) for _ in metrics.keeping_topics({"t7"}))
    of_a_topic = (len(metrics.registry) - len(ProducerMetrics().registry)) // 100
    left = [count // of_a_topic for count in (len(metrics.registry), *counts)]
    assert max(before - after for before, after in pairwise(left)) <= STEP
    assert len(left) == 1 + 99 // STEP


def test_gauges_are_computed_on_reading() -> None:
    gauges = Gauges(
        buffer_available=60,
        waiting=2,
        parked_bytes=1,
        parked_records=3,
        requests_in_flight=4,
        unanswered_since=4.0,
        metadata_time=7.0,
        unreachable_since=8.0,
    )
    metrics = ProducerMetrics(buffer_memory=100, gauges=lambda: gauges)
    found = metrics.snapshot(10.0)
    gauges = replace(gauges, parked_bytes=9)
    names = ("buffer-available-bytes", "waiting-threads", "parked-bytes", "parked-records")
    assert [found[name] for name in names] == [60.0, 2.0, 1.0, 3.0]
    assert (found["requests-in-flight"], found["metadata-age"], found["unreachable-age"]) == (4.0, 3.0, 2.0)
    assert found["unanswered-age"] == 6.0
    assert metrics.snapshot(10.0)["parked-bytes"] == 9.0


def test_flushes_and_waiting_threads_are_measured() -> None:
    metrics = ProducerMetrics()
    metrics.flushed(1.5)
    metrics.flushed(0.5)
    metrics.memory_wait.set_waiting(True, 10.0)
    metrics.metadata_wait.set_waiting(True, 11.0)
    found = metrics.snapshot(12.0)
    assert found["flush-time-ns-total"] == 2e9
    assert (found["bufferpool-wait-time-ns-total"], found["metadata-wait-time-ns-total"]) == (2e9, 1e9)
    assert found["bufferpool-wait-ratio"] == pytest.approx(2 / 30, rel=0.1)


def test_traffic_per_node_and_in_all() -> None:
    metrics = ProducerMetrics("me")
    one, two = metrics.network.node(1), metrics.network.node(-1)
    for node in (one, two):
        node.connected(0.0)
    one.request_sent(100, 1.0)
    one.request_sent(300, 1.0)
    two.request_sent(50, 1.0)
    one.response_received(20, 2.0)
    two.disconnected(2.0)
    metrics.request_answered(1, 8.0, 0.0, 2.0)
    found = metrics.snapshot(2.0)
    assert (found["outgoing-byte-total"], found["request-total"], found["request-size-max"]) == (450, 3, 300)
    assert (found["incoming-byte-total"], found["response-total"], found["network-io-total"]) == (20, 1, 4)
    assert found["network-io-rate"] == pytest.approx(3 / 31 + 1 / 30)
    assert [found[f"connection-{what}"] for what in ("creation-total", "close-total", "count")] == [2, 1, 1]
    of_one = found.node(1)
    assert (of_one["outgoing-byte-total"], of_one["request-size-avg"], of_one["request-latency-max"]) == (400, 200, 8)
    assert math.isnan(found.node(-1)["request-latency-avg"])
    assert MetricName("request-rate", "producer-node-metrics", (("client-id", "me"), ("node-id", "node--1"))) in found


def test_a_node_that_is_gone_loses_its_metrics_but_not_its_part_in_the_sums() -> None:
    metrics = ProducerMetrics()
    node = metrics.network.node(1)
    node.request_sent(100, 1.0)
    metrics.network.forget_node(1)
    metrics.network.forget_node(2)
    node.response_received(10, 1.0)
    metrics.request_answered(1, 8.0, 0.0, 2.0)
    found = metrics.snapshot(2.0)
    assert len(found.node(1)) == 0
    assert (found["outgoing-byte-total"], found["incoming-byte-total"], found["request-latency-max"]) == (100, 10, 8)
    assert metrics.network.node(1).sent.count == 0


def test_the_count_metric_is_the_number_of_metrics() -> None:
    metrics = ProducerMetrics()
    found = metrics.snapshot(0.0)
    assert found["count"] == len(found)
