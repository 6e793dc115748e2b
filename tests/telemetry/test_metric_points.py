"""Metrics as points: names, labels, and what is counted since the last push."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from aioproducer.metrics.distribution import Distribution
from aioproducer.metrics.metric_name import MetricName
from aioproducer.metrics.producer_metrics import ProducerMetrics
from aioproducer.metrics.registry import MetricRegistry
from aioproducer.telemetry.metric_key import labels, metric_key
from aioproducer.telemetry.metric_points import Counts, MetricPoints, Point
from aioproducer.telemetry.subscription import Subscription

ID = UUID(int=7)
TOTAL = "org.apache.kafka.producer.record.send.total"


def wanting(*prefixes: str, delta: bool = True) -> Subscription:
    return Subscription(ID, 1, 10.0, (), delta, 1000, prefixes or ("",))


@pytest.mark.parametrize(
    ("group", "name", "own", "key"),
    [
        ("producer-metrics", "record-send-rate", False, TOTAL.replace("total", "rate")),
        ("producer-node-metrics", "request-latency-avg", False, "org.apache.kafka.producer.node.request.latency.avg"),
        ("producer-topic-metrics", "byte-total", False, "org.apache.kafka.producer.topic.byte.total"),
        ("kafka-metrics-count", "count", False, "org.apache.kafka.kafka.count.count"),
        ("app-info", "start-time-ms", False, "org.apache.kafka.app.info.start.time.ms"),
        ("producer-metrics", "parked-bytes", True, "aioproducer.producer.parked.bytes"),
    ],
)
def test_names(group: str, name: str, own: bool, key: str) -> None:
    assert metric_key(MetricName(name, group), own=own) == key


def test_labels_have_no_client_id() -> None:
    assert labels((("client-id", "me"), ("node-id", "node-1"))) == (("node_id", "node-1"),)


class Counter:
    """A registry with the count ``total``, and points that were made at the time 1000 ms."""

    def __init__(self) -> None:
        self.registry = MetricRegistry()
        self.group = self.registry.group("producer-metrics", ())
        self.value = 0.0
        self.group.gauge("record-send-total", "", lambda now: self.value)
        self.points = MetricPoints(self.registry, 1000)

    def read(self, time_ms: int, **more: Any) -> Point:
        (point,) = self.points.points(wanting(**more), 0.0, time_ms)
        return point

    def pushed(self, time_ms: int, **more: Any) -> tuple[float | Counts, int | None]:
        point = self.read(time_ms, **more)
        self.points.pushed([point])
        return point.value, point.start_ms


def test_a_delta_is_what_came_since_the_last_push() -> None:
    counter = Counter()
    counter.value = 5.0
    assert counter.pushed(2000) == (5.0, 1000)
    counter.value = 7.0
    assert counter.pushed(3000) == (2.0, 2000)
    assert counter.pushed(4000) == (0.0, 3000)


def test_without_delta_it_is_all() -> None:
    counter = Counter()
    counter.value = 5.0
    assert counter.pushed(2000, delta=False) == (5.0, 1000)
    assert counter.pushed(3000, delta=False) == (5.0, 1000)
    assert counter.pushed(4000, delta=True) == (5.0, 1000)  # the ledger begins anew, as in Kafka
    assert counter.pushed(5000, delta=True) == (0.0, 4000)


def test_a_refused_push_is_in_the_next_one() -> None:
    counter = Counter()
    counter.value = 5.0
    counter.pushed(2000)
    counter.value = 7.0
    assert counter.pushed(3000) == (2.0, 2000)
    counter.points.refused()
    counter.value = 8.0
    assert counter.pushed(4000) == (3.0, 2000)


def test_a_count_that_came_later_has_begun_after_the_last_push() -> None:
    counter = Counter()
    counter.pushed(2000)
    later = counter.registry.group("producer-topic-metrics", (("topic", "t"),))
    later.gauge("byte-total", "", lambda now: 3.0)
    point = list(counter.points.points(wanting(), 0.0, 3000))[-1]
    assert (point.key, point.labels) == ("org.apache.kafka.producer.topic.byte.total", (("topic", "t"),))
    assert (point.value, point.start_ms) == (3.0, 2000)


def test_a_count_that_begins_again_is_not_negative() -> None:
    counter = Counter()
    counter.value = 5.0
    counter.pushed(2000)
    counter.value = 1.0
    assert counter.pushed(3000) == (1.0, 2000)


def test_a_count_that_is_gone_is_forgotten() -> None:
    counter = Counter()
    counter.pushed(2000)
    counter.group.remove()
    assert list(counter.points.points(wanting(), 0.0, 3000)) == []
    counter.group.gauge("record-send-total", "", lambda now: 4.0)
    assert counter.pushed(4000) == (4.0, 3000)


def test_distributions_are_counted_too() -> None:
    distribution = Distribution(MetricName("batch-bytes", "producer-metrics"), "", (1.0, 2.0))
    points = MetricPoints(MetricRegistry(), 1000, lambda: [distribution.buckets()])
    for value in (0.5, 1.5, 9.0):
        distribution.record(value)
    (first,) = points.points(wanting(), 0.0, 2000)
    assert (first.key, first.value) == ("aioproducer.producer.batch.bytes", Counts((1.0, 2.0), (1, 1, 1), 11.0))
    points.pushed([first])
    distribution.record(1.5)
    (second,) = points.points(wanting(), 0.0, 3000)
    assert (second.value, second.start_ms) == (Counts((1.0, 2.0), (0, 1, 0), 1.5), 2000)


def test_only_what_is_wanted_and_has_a_value() -> None:
    metrics = ProducerMetrics("me")
    points = MetricPoints(metrics.registry, 0, metrics.distributions)
    keys = [point.key for point in points.points(wanting("org.apache.kafka.producer.record."), 0.0, 1)]
    assert TOTAL in keys
    assert all(key.startswith("org.apache.kafka.producer.record.") for key in keys)
    assert "org.apache.kafka.producer.record.size.avg" not in keys  # NaN
    assert list(points.points(wanting("nothing"), 0.0, 1)) == []


def test_topics_come_last() -> None:
    metrics = ProducerMetrics("me")
    metrics.batch_sent("t", records=1, size=1, uncompressed=1, largest=1, queued_ms=0.0, now=0.0)
    metrics.network.node(1)
    points = list(MetricPoints(metrics.registry, 0).points(wanting(), 0.0, 1))
    kinds = [2 if dict(point.labels).get("topic") else 1 if point.labels else 0 for point in points]
    assert kinds == sorted(kinds)
    assert set(kinds) == {0, 1, 2}


@pytest.mark.parametrize("own", [True, False])
def test_no_two_metrics_have_the_same_name(own: bool) -> None:
    keys = [metric_key(name, own=metric.own) for name, metric in ProducerMetrics().registry if metric.own is own]
    assert len(set(keys)) == len(keys)
