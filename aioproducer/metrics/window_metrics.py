"""The in-flight windows of partitions that leaders announced (KIP-1269)."""

from __future__ import annotations

from collections.abc import Collection

from aioproducer.metrics.metric_name import PARTITION_GROUP, PRODUCER_GROUP, Tags
from aioproducer.metrics.registry import Measure, MetricGroup, MetricRegistry


class WindowMetrics:
    """How often windows were learned and lost, and the windows that differ from the default."""

    def __init__(self, registry: MetricRegistry, tags: Tags) -> None:
        self._registry = registry
        self._tags = tags
        self._discovered = 0
        self._reset = 0
        self._partitions: dict[tuple[str, int], tuple[Measure, Measure]] = {}
        self._shown: dict[tuple[str, int], MetricGroup] = {}
        group = registry.group(PRODUCER_GROUP, tags)
        group.gauge(
            "in-flight-windows-discovered-total",
            "in all: answers that announced a new window for a partition (KIP-1269)",
            lambda now: float(self._discovered),
            own=True,
        )
        group.gauge(
            "in-flight-windows-reset-total",
            "in all: windows reset to 5, as the leader changed or its connection was lost",
            lambda now: float(self._reset),
            own=True,
        )

    def discovered(self) -> None:
        self._discovered += 1

    def reset(self, topic: str, partition: int) -> None:
        """Counts the loss of a partition's window."""
        self._reset += 1
        self.forget(topic, partition)

    def show(self, topic: str, partition: int, window: Measure, in_flight: Measure) -> None:
        """Publishes a partition's window, and how many batches it holds."""
        self.forget(topic, partition)
        self._partitions[topic, partition] = window, in_flight
        self._publish(topic, partition)

    def _publish(self, topic: str, partition: int) -> None:
        window, in_flight = self._partitions[topic, partition]
        tags = (*self._tags, ("partition", str(partition)), ("topic", topic))
        group = self._shown[topic, partition] = self._registry.group(PARTITION_GROUP, tags)
        group.gauge(
            "in-flight-window",
            "batches that may be under way, as the leader announced; partitions with the default of 5 have none",
            window,
            own=True,
        )
        group.gauge("batches-in-flight", "batches that are not resolved, on the wire or not", in_flight, own=True)

    def forget(self, topic: str, partition: int) -> None:
        """The partition's window is the default."""
        self._partitions.pop((topic, partition), None)
        self._hide(topic, partition)

    def _hide(self, topic: str, partition: int) -> None:
        group = self._shown.pop((topic, partition), None)
        if group is not None:
            group.remove()

    def keep(self, topics: Collection[str]) -> None:
        """Publishes the windows of these topics and of no others: a topic that is used again has the windows it had."""
        for topic, partition in self._partitions:
            if topic not in topics:
                self._hide(topic, partition)
            elif (topic, partition) not in self._shown:
                self._publish(topic, partition)
