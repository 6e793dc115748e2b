"""Counts of records and bytes per topic (Kafka's ``SenderMetrics``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from aioproducer.metrics.metric_name import TOPIC_GROUP, Tags
from aioproducer.metrics.registry import MetricGroup, MetricRegistry, RecordingLevel

STEP: Final = 16
"""Topics between two pauses: forgetting them takes well below half a millisecond."""


class TopicMetrics:
    """One topic's."""

    def __init__(self, registry: MetricRegistry, group: MetricGroup) -> None:
        self.group = group
        self.records = registry.sensor()
        self.bytes = registry.sensor()
        self.compression = registry.sensor()
        self.retries = registry.sensor()
        self.errors = registry.sensor()
        self.queue_time = registry.sensor(RecordingLevel.DEBUG)
        group.meter("record-send", "records sent, each attempt counted", self.records)
        group.meter("byte", "bytes of batches sent, as they are on the wire", self.bytes)
        group.gauge(
            "compression-rate",
            "average: bytes of a batch as sent, divided by its bytes before compression",
            self.compression.average,
        )
        group.meter("record-retry", "records whose batch must be sent again", self.retries)
        group.meter("record-error", "records that failed", self.errors)
        group.average_and_max(
            "record-queue-time",
            "milliseconds from a batch's first record to its request (level DEBUG)",
            self.queue_time,
            own=True,
        )


class TopicTable:
    """The topics with records sent that are not forgotten."""

    def __init__(self, registry: MetricRegistry, tags: Tags) -> None:
        self._registry = registry
        self._tags = tags
        self._topics: dict[str, TopicMetrics] = {}

    def get(self, topic: str) -> TopicMetrics | None:
        return self._topics.get(topic)

    def of(self, topic: str) -> TopicMetrics:
        """A topic's metrics, made when the first batch is sent to it, or its first records begin to wait for that."""
        found = self._topics.get(topic)
        if found is None:
            group = self._registry.group(TOPIC_GROUP, (*self._tags, ("topic", topic)))
            found = self._topics[topic] = TopicMetrics(self._registry, group)
        return found

    def keeping(self, topics: Collection[str]) -> Iterator[None]:
        """Forgets all other topics, with a pause after every few; one that comes back starts from zero."""
        forgotten = [name for name in self._topics if name not in topics]
        for number, name in enumerate(forgotten):
            if number % STEP == STEP - 1:
                yield
            self._topics.pop(name).group.remove()
