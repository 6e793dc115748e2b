"""A client's metrics as points in time (Kafka's ``KafkaMetricsCollector``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from aioproducer.metrics.distribution import Buckets
from aioproducer.metrics.metric_name import NODE_GROUP, PARTITION_GROUP, TOPIC_GROUP, MetricName, Tags
from aioproducer.metrics.registry import MetricRegistry
from aioproducer.telemetry.metric_key import labels, metric_key
from aioproducer.telemetry.subscription import Subscription


class Point(NamedTuple):
    """One metric at one time. Times are milliseconds since the epoch."""

    key: str
    labels: Tags
    time_ms: int
    start_ms: int | None
    """For what is counted: since when. None for a figure that may rise and fall."""
    value: float | Counts
    of: MetricName
    total: float | Counts
    """The value since the metric is there, which is also ``value`` unless only the change since the last push is
    wanted."""


class Counts(NamedTuple):
    """How many values there were in each bucket, one more than there are bounds."""

    bounds: Sequence[float]
    counts: tuple[int, ...]
    sum: float

    def since(self, before: Counts) -> Counts:
        changes = tuple(now - then for now, then in zip(self.counts, before.counts, strict=True))
        return Counts(self.bounds, changes, self.sum - before.sum)


class MetricPoints:
    """Reads the metrics, and remembers which of them were pushed.

    A push that a broker refuses does not count: the next one has its changes, too. One without an answer does: else
    they might be counted twice, and a gap is what OpenTelemetry allows in its place.
    """

    def __init__(
        self,
        registry: MetricRegistry,
        start_ms: int,
        distributions: Callable[[], Sequence[Buckets]] = tuple,
    ) -> None:
        self._registry = registry
        self._distributions = distributions
        self._read_ms = start_ms
        self._since: dict[MetricName, int] = {}
        """When each count was first there, at the latest."""
        self._pushed: dict[MetricName, tuple[int, float | Counts]] = {}
        """The last push of each count: when, and its value."""
        self._before = self._pushed
        self._is_delta: bool | None = None

    def points(self, subscription: Subscription, now: float, time_ms: int) -> Iterator[Point]:
        """The points that the subscription wants: first those of the whole client, then of brokers, then of topics.

        ``now`` is the loop's time in seconds. Figures without a value are left out.
        """
        if self._is_delta is not subscription.delta_temporality:
            self._is_delta = subscription.delta_temporality
            self._pushed.clear()
        counts = self._counts()
        self._follow(counts, time_ms)
        for name, metric in sorted(self._registry, key=_order):
            key = metric_key(name, own=metric.own)
            if not subscription.wants(key):
                continue
            value = float(metric.measure(now))
            if name in self._since:
                yield self._counted(key, name, value, time_ms)
            elif math.isfinite(value):
                yield Point(key, labels(name.tags), time_ms, None, value, name, value)
        for name, count in counts.items():
            key = metric_key(name, own=True)
            if subscription.wants(key):
                yield self._counted(key, name, count, time_ms)

    def pushed(self, points: Sequence[Point]) -> None:
        """These points are on their way; :meth:`refused` takes that back."""
        self._before = self._pushed
        self._pushed = dict(self._pushed)
        for point in points:
            if point.start_ms is not None:
                self._pushed[point.of] = point.time_ms, point.total

    def refused(self) -> None:
        """The broker has not taken the last points."""
        self._pushed = self._before

    def _counted(self, key: str, name: MetricName, total: float | Counts, time_ms: int) -> Point:
        start_ms, value = self._since[name], total
        if self._is_delta and name in self._pushed:
            pushed_ms, before = self._pushed[name]
            if isinstance(total, Counts) and isinstance(before, Counts):
                start_ms, value = pushed_ms, total.since(before)
            elif isinstance(total, float) and isinstance(before, float) and total >= before:
                start_ms, value = pushed_ms, total - before
            else:  # it was gone, and has begun again
                start_ms = pushed_ms
        return Point(key, labels(name.tags), time_ms, start_ms, value, name, total)

    def _follow(self, counts: dict[MetricName, Counts], time_ms: int) -> None:
        """Learns of new counts, and forgets those that are gone."""
        there = [name for name, _ in self._registry if name.name.endswith("-total")]
        there += counts
        self._since = {name: self._since.get(name, self._read_ms) for name in there}
        self._pushed = {name: pushed for name, pushed in self._pushed.items() if name in self._since}
        self._read_ms = time_ms

    def _counts(self) -> dict[MetricName, Counts]:
        found = {}
        for one in self._distributions():
            counts = tuple(count - below for count, below in zip(one.counts, (0, *one.counts), strict=False))
            found[one.name] = Counts(one.bounds, counts, one.sum)
        return found


_LAST = {NODE_GROUP: 1, TOPIC_GROUP: 2, PARTITION_GROUP: 3}


def _order(entry: tuple[MetricName, object]) -> int:
    """Topics and partitions may be many, and come last."""
    return _LAST.get(entry[0].group, 0)
