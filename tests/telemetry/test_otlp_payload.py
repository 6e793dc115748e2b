from __future__ import annotations

from aioproducer.build_info import __version__
from aioproducer.metrics.metric_name import MetricName
from aioproducer.telemetry.metric_points import Counts, Point
from aioproducer.telemetry.otlp_payload import OtlpPayload, otlp_library

OTLP = otlp_library()
NAME = MetricName("n", "g")


def point(key: str, value: float | Counts, start_ms: int | None = None, **labels: str) -> Point:
    return Point(key, tuple(labels.items()), 2, start_ms, value, NAME, value)


def test_points_of_a_metric_stand_together() -> None:
    payload = OtlpPayload(OTLP, (("client_rack", "r1"),), 10_000, delta=True)
    assert payload.add(point("a", 1.5, topic="t"))
    assert payload.add(point("b", 3.0, 1))
    assert payload.add(point("a", 2.5, topic="u"))
    assert payload.add(point("c", Counts((1.0,), (2, 3), 7.0), 1))
    (of,) = OTLP.MetricsData.FromString(payload.encode()).resource_metrics
    assert [(one.key, one.value.string_value) for one in of.resource.attributes] == [("client_rack", "r1")]
    (scope,) = of.scope_metrics
    assert (scope.scope.name, scope.scope.version) == ("aioproducer", __version__)
    a, b, c = scope.metrics
    assert [(one.as_double, one.time_unix_nano) for one in a.gauge.data_points] == [(1.5, 2_000_000), (2.5, 2_000_000)]
    assert [one.attributes[0].value.string_value for one in a.gauge.data_points] == ["t", "u"]
    assert (b.sum.is_monotonic, b.sum.aggregation_temporality) == (True, OTLP.AGGREGATION_TEMPORALITY_DELTA)
    assert [(one.as_double, one.start_time_unix_nano) for one in b.sum.data_points] == [(3.0, 1_000_000)]
    (histogram,) = c.histogram.data_points
    assert (histogram.count, histogram.sum) == (5, 7.0)
    assert (list(histogram.bucket_counts), list(histogram.explicit_bounds)) == ([2, 3], [1.0])


def test_cumulative() -> None:
    payload = OtlpPayload(OTLP, (), 10_000, delta=False)
    assert payload.add(point("b", 3.0, 1))
    (metric,) = OTLP.MetricsData.FromString(payload.encode()).resource_metrics[0].scope_metrics[0].metrics
    assert metric.sum.aggregation_temporality == OTLP.AGGREGATION_TEMPORALITY_CUMULATIVE


def test_a_payload_is_never_larger_than_allowed() -> None:
    for most in (*range(0, 400, 7), 5000):
        payload = OtlpPayload(OTLP, (("client_rack", "r"),), most, delta=True)
        taken = sum(payload.add(point("m" * (1 + n % 90), 1.0, n, topic="t" * n)) for n in range(60))
        assert taken == 0 or len(payload.encode()) <= most
    assert 0 < taken < 60
