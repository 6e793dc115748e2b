"""The metrics that exist at present, and the function that computes each."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from enum import IntEnum
from typing import NamedTuple

from aioproducer.metrics.metric_name import MetricName, Tags
from aioproducer.metrics.sensor import Sensor

Measure = Callable[[float], float]
"""The value at ``now``."""


class RecordingLevel(IntEnum):
    """How much is recorded (metrics.recording.level); a sensor above the configured level records nothing."""

    INFO = 0
    DEBUG = 1
    TRACE = 2


class Metric(NamedTuple):
    """One metric: its description, and how it is computed."""

    doc: str
    measure: Measure
    own: bool
    """Not one of Kafka's."""


class MetricRegistry:
    """All metrics of a client by name, and the settings of their sensors."""

    def __init__(self, *, window: float = 30.0, samples: int = 2, level: RecordingLevel = RecordingLevel.INFO) -> None:
        self._window = window
        self._samples = samples
        self._level = level
        self._groups: dict[tuple[str, Tags], MetricGroup] = {}
        """Those with metrics, in order."""
        self._count = 0

    def sensor(self, level: RecordingLevel = RecordingLevel.INFO) -> Sensor:
        return Sensor(self._window, self._samples, level <= self._level)

    def group(self, name: str, tags: Tags) -> MetricGroup:
        """The group of this name with these tags. Only one of them may have metrics, so that none is there twice."""
        return self._groups.get((name, tags)) or MetricGroup(self, name, tags)

    def changed(self, group: MetricGroup, by: int) -> None:
        """The group has so many metrics more, or fewer."""
        self._count += by
        place = group.name, group.tags
        there = self._groups.setdefault(place, group)
        assert there is group, f"there is another group {place}"
        if not group.metrics:
            del self._groups[place]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[MetricName, Metric]]:
        return self._of(())

    def _of(self, without: Container[str]) -> Iterator[tuple[MetricName, Metric]]:
        for group in list(self._groups.values()):
            if group.name not in without:
                yield from list(group.metrics.items())

    def values(self, now: float, without: Container[str] = ()) -> dict[MetricName, float]:
        """Every metric at this moment, but none of the groups with these names. Any thread may call it: metrics may be
        added and removed meanwhile."""
        return {name: metric.measure(now) for name, metric in self._of(without)}


class MetricGroup:
    """The metrics of the producer, a node or a topic: they share their tags, and are removed together.

    Each group has a dict of its own: one dict of 100,000 metrics would hold the loop for milliseconds as it grows.
    """

    def __init__(self, registry: MetricRegistry, group: str, tags: Tags) -> None:
        self._registry = registry
        self.name = group
        self.tags = tags
        self.metrics: dict[MetricName, Metric] = {}

    def gauge(self, name: str, doc: str, measure: Measure, *, own: bool = False) -> None:
        """A metric whose value is read in place."""
        full = MetricName(name, self.name, self.tags)
        assert full not in self.metrics, f"{full} is there already"
        self.metrics[full] = Metric(doc, measure, own)
        self._registry.changed(self, 1)

    def meter(self, base: str, what: str, sensor: Sensor, *, own: bool = False) -> None:
        """``base-rate`` and ``base-total``, of the values recorded."""
        self.gauge(f"{base}-rate", f"per second: {what}", sensor.rate, own=own)
        self.gauge(f"{base}-total", f"in all: {what}", lambda now: sensor.total, own=own)

    def count_meter(self, base: str, what: str, sensor: Sensor, *, own: bool = False) -> None:
        """``base-rate`` and ``base-total``, of how often something was recorded."""
        self.gauge(f"{base}-rate", f"per second: {what}", sensor.count_rate, own=own)
        self.gauge(f"{base}-total", f"in all: {what}", lambda now: float(sensor.count), own=own)

    def average(self, base: str, what: str, sensor: Sensor, *, own: bool = False) -> None:
        self.gauge(f"{base}-avg", f"average: {what}", sensor.average, own=own)

    def average_and_max(self, base: str, what: str, sensor: Sensor, *, own: bool = False) -> None:
        self.average(base, what, sensor, own=own)
        self.gauge(f"{base}-max", f"largest: {what}", sensor.maximum, own=own)

    def remove(self) -> None:
        """Removes the metrics."""
        count = len(self.metrics)
        self.metrics.clear()
        self._registry.changed(self, -count)
