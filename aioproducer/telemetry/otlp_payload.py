"""Points as OpenTelemetry's protocol (OTLP) has them: a ``MetricsData`` message, through ``opentelemetry-proto``.

The library is imported when a broker first wants metrics, and not before: it brings protobuf.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from aioproducer.build_info import __version__
from aioproducer.metrics.metric_name import Tags
from aioproducer.telemetry.metric_points import Counts, Point

SCOPE: Final = "aioproducer"

_MODULE = "opentelemetry.proto.metrics.v1.metrics_pb2"
_OVERHEAD: Final = 16
"""Bytes around a point: tags and lengths of what holds it."""


def otlp_library() -> Any:
    """The module with OTLP's messages for metrics; raises ImportError if it is not installed.

    Takes some 50 ms the first time.
    """
    return import_module(_MODULE)


class OtlpPayload:
    """A payload of at most ``max_bytes``: points beyond that are refused. Points of a metric stand together."""

    def __init__(self, library: Any, resource: Tags, max_bytes: int, *, delta: bool) -> None:
        self._library = library
        self._left = max_bytes
        self._message = library.MetricsData()
        of = self._message.resource_metrics.add()
        _set_labels(of.resource.attributes, resource)
        scope = of.scope_metrics.add()
        scope.scope.name, scope.scope.version = SCOPE, __version__
        self._metrics = scope.metrics
        self._by_key: dict[str, Any] = {}
        self._temporality = (
            library.AGGREGATION_TEMPORALITY_DELTA if delta else library.AGGREGATION_TEMPORALITY_CUMULATIVE
        )
        self._left -= self._message.ByteSize() + _OVERHEAD

    def add(self, point: Point) -> bool:
        """Takes a point; False if there is no room for it."""
        data = self._library.HistogramDataPoint() if isinstance(point.value, Counts) else self._number(point)
        if isinstance(point.value, Counts):
            data.count, data.sum = sum(point.value.counts), point.value.sum
            data.bucket_counts.extend(point.value.counts)
            data.explicit_bounds.extend(point.value.bounds)
        data.time_unix_nano = point.time_ms * 1_000_000
        if point.start_ms is not None:
            data.start_time_unix_nano = point.start_ms * 1_000_000
        _set_labels(data.attributes, point.labels)
        size = data.ByteSize() + _OVERHEAD
        if point.key not in self._by_key:
            size += len(point.key.encode()) + _OVERHEAD
        if size > self._left:
            return False
        self._left -= size
        self._points(point).append(data)
        return True

    def encode(self) -> bytes:
        encoded: bytes = self._message.SerializeToString()
        return encoded

    def _number(self, point: Point) -> Any:
        return self._library.NumberDataPoint(as_double=point.value)

    def _points(self, point: Point) -> Any:
        """The points of its metric."""
        metric = self._by_key.get(point.key)
        if metric is None:
            metric = self._by_key[point.key] = self._metrics.add(name=point.key)
        if point.start_ms is None:
            return metric.gauge.data_points
        if isinstance(point.value, Counts):
            metric.histogram.aggregation_temporality = self._temporality
            return metric.histogram.data_points
        metric.sum.aggregation_temporality = self._temporality
        metric.sum.is_monotonic = True
        return metric.sum.data_points


def _set_labels(attributes: Any, labels: Tags) -> None:
    for key, value in labels:
        attributes.add(key=key).value.string_value = value
