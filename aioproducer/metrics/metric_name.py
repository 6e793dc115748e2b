"""The name of a metric (Kafka's ``MetricName``)."""

from __future__ import annotations

from typing import NamedTuple

PRODUCER_GROUP = "producer-metrics"
NODE_GROUP = "producer-node-metrics"
TOPIC_GROUP = "producer-topic-metrics"
PARTITION_GROUP = "producer-partition-metrics"

Tags = tuple[tuple[str, str], ...]


class MetricName(NamedTuple):
    """A name, the group it belongs to, and tags: ``client-id`` always, ``node-id`` or ``topic`` where it belongs to
    one."""

    name: str
    group: str
    tags: Tags = ()
    """Pairs in the order of their keys."""

    def tag(self, key: str) -> str | None:
        """The value of one tag, None if the metric does not have it."""
        return next((value for tag, value in self.tags if tag == key), None)
