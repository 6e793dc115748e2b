"""Every metric that a producer can have, including those of nodes and topics, which come and go."""

from __future__ import annotations

from aioproducer.metrics.distribution import Buckets
from aioproducer.metrics.metric_name import MetricName
from aioproducer.metrics.producer_metrics import ProducerMetrics
from aioproducer.metrics.registry import Metric


def every_metric() -> list[tuple[MetricName, Metric]]:
    """By group, with the values of tags left empty; a metric's ``doc`` says what it is, in words."""
    metrics = ProducerMetrics()
    metrics.network.node(1)
    metrics.windows.show("", 0, lambda now: 0.0, lambda now: 0.0)
    metrics.batch_sent("", records=1, size=1, uncompressed=1, largest=1, queued_ms=0.0, now=0.0)
    order = list(dict.fromkeys(name.group for name, _ in metrics.registry))
    found = sorted(metrics.registry, key=lambda entry: (order.index(entry[0].group), entry[0].name))
    return [(name._replace(tags=tuple((key, "") for key, _ in name.tags)), metric) for name, metric in found]


def every_distribution() -> tuple[Buckets, ...]:
    """The metrics that every producer has, without values."""
    return ProducerMetrics().snapshot(0.0).distributions
