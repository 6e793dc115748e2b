"""The names of metrics and labels in OpenTelemetry, as KIP-714 and Kafka's ``TelemetryMetricNamingConvention`` have
them."""

from __future__ import annotations

from typing import Final

from aioproducer.metrics.metric_name import MetricName, Tags

KAFKAS: Final = "org.apache.kafka."
"""In front of the names of Kafka's own metrics."""

OWN: Final = "aioproducer."
"""In front of the names of metrics that no other client has."""

_EXCLUDED: Final = "client-id"
"""Brokers know it from the request."""


def metric_key(name: MetricName, *, own: bool) -> str:
    """``org.apache.kafka.producer.record.send.rate`` for ``record-send-rate`` of the group ``producer-metrics``."""
    group = name.group.lower().replace("-", ".").replace(".metrics", "")
    return f"{OWN if own else KAFKAS}{group}.{name.name.lower().replace('-', '.')}"


def labels(tags: Tags) -> Tags:
    """Tags as labels: ``node_id`` for ``node-id``, and without the client's id."""
    return tuple((key.lower().replace("-", "_"), value) for key, value in tags if key != _EXCLUDED)
