"""The in-flight windows of partitions that leaders announced (KIP-1269)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, TypeVar

from aioproducer.metrics.metric_name import PARTITION_GROUP, PRODUCER_GROUP, Tags
from aioproducer.metrics.registry import Measure, MetricGroup, MetricRegistry

T = TypeVar("T")

STEP: Final = 64
"""Partitions between two pauses: well below half a millisecond."""


class WindowMetrics:
    """How often windows were learned and lost, and the windows that differ from the default."""

    def __init__(self, registry: MetricRegistry, tags: Tags) -> None:
        self._registry = registry
        self._tags = tags
        self._discovered = 0
        self._reset = 0
        self._partitions: dict[str, dict[int, tuple[Measure, Measure]]] = {}
        self._shown: dict[str, dict[int, MetricGroup]] = {}
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
        self._partitions.setdefault(topic, {})[partition] = window, in_flight
        self._publish(topic, partition)

    def _publish(self, topic: str, partition: int) -> None:
        window, in_flight = self._partitions[topic][partition]
        tags = (*self._tags, ("partition", str(partition)), ("topic", topic))
        group = self._registry.group(PARTITION_GROUP, tags)
        self._shown.setdefault(topic, {})[partition] = group
        group.gauge(
            "in-flight-window",
            "batches that may be under way, as the leader announced; partitions with the default of 5 have none",
            window,
            own=True,
        )
        group.gauge("batches-in-flight", "batches that are not resolved, on the wire or not", in_flight, own=True)

    def forget(self, topic: str, partition: int) -> None:
        """The partition's window is the default."""
        if _pop(self._partitions, topic, partition) is None:
            return
        group = _pop(self._shown, topic, partition)
        if group is not None:
            group.remove()

    def keeping(self, topics: Collection[str]) -> Iterator[None]:
        """Publishes the windows of these topics and of no others, with a pause after every few partitions: a topic that
        is used again has the windows it had."""
        for topic in list(self._partitions):
            for number, partition in enumerate(list(self._partitions.get(topic, ()))):
                if number % STEP == 0:
                    yield
                if topic not in topics:
                    group = _pop(self._shown, topic, partition)
                    if group is not None:
                        group.remove()
                elif partition in self._partitions.get(topic, ()) and partition not in self._shown.get(topic, ()):
                    self._publish(topic, partition)


def _pop(by_topic: dict[str, dict[int, T]], topic: str, partition: int) -> T | None:
    """Removes what the partition has, and returns it. A topic without any is removed, too."""
    partitions = by_topic.get(topic, {})
    popped = partitions.pop(partition, None)
    if not partitions:
        by_topic.pop(topic, None)
    return popped
