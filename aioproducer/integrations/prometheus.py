"""A producer's metrics for Prometheus.

::

    KafkaProducer(bootstrap_servers="localhost:9092", client_id="orders", metric_reporters=[PrometheusReporter()])

Names are Kafka's: ``kafka_producer_record_send_rate{client_id="orders"}``. Metrics of topics and brokers have one more
label (``kafka_producer_topic_byte_rate``, ``kafka_producer_node_request_latency_avg``). Metrics without a value yet are
left out. The histograms ``kafka_producer_batch_acknowledgement_seconds`` and ``kafka_producer_batch_bytes`` can be
added up over producers and instances; averages and maxima cannot. Needs the extra ``prometheus``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Protocol
from weakref import WeakKeyDictionary

try:
    from prometheus_client import REGISTRY, CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.registry import Collector
    from prometheus_client.utils import floatToGoString
except ModuleNotFoundError as error:
    raise ImportError(
        "aioproducer.integrations.prometheus needs prometheus-client: pip install 'aioproducer[prometheus]'"
    ) from error

from aioproducer import MetricName, MetricsSnapshot
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import IllegalStateException
from aioproducer.integrations.metric_names import check_client_id, is_counter, joined_name
from aioproducer.metrics import every_metric
from aioproducer.outbox.relay_metrics import DOCS, GROUP

__all__ = ["PrometheusReporter"]

_DOCS: Final = {
    **{(name.group, name.name): metric.doc for name, metric in every_metric()},
    **{(GROUP, name): doc for name, doc in DOCS.items()},
}


class Reported(Protocol):
    """A ``KafkaProducer``, or an ``OutboxRelay``."""

    @property
    def config(self) -> ProducerConfig: ...

    def metrics(self) -> MetricsSnapshot: ...


class PrometheusReporter:
    """One of a producer's ``metric_reporters``: its metrics are in ``registry`` from its start to its end.

    All producers of a registry share its metric families. The ``client_id`` distinguishes them, so each needs its own.
    Nothing is computed before a scrape, which may come from any thread.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._registry = registry
        self._producer: Reported | None = None

    def init(self, producer: Reported) -> None:
        """The producer has started. For an ``OutboxRelay``, which starts producers of its own, call it yourself."""
        if self._producer is not None:
            raise IllegalStateException("this PrometheusReporter belongs to another producer: make one for each")
        collector = _collectors.get(self._registry)
        if collector is None:
            collector = _collectors[self._registry] = ProducerCollector()
            self._registry.register(collector)
        check_client_id(producer, collector.producers)
        self._producer = producer
        collector.producers.append(producer)

    async def close(self) -> None:
        """The producer is closing: scrapes no longer contain its metrics."""
        collector = _collectors.get(self._registry)
        if collector is not None and self._producer in collector.producers:
            collector.producers.remove(self._producer)


class ProducerCollector(Collector):
    """The metrics of all ``producers`` at the moment of a scrape."""

    def __init__(self) -> None:
        self.producers: list[Reported] = []

    def describe(self) -> list[Metric]:
        """Nothing, because the producers decide which families exist."""
        return []

    def collect(self) -> Iterator[Metric]:
        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        histograms: dict[str, HistogramMetricFamily] = {}
        for producer in tuple(self.producers):
            found = producer.metrics()
            for name, value in found.items():
                if math.isfinite(value):
                    family = _family(families, name)
                    family.add_metric([label for _, label in name.tags], value)
            for one in found.distributions:
                full = joined_name(one.name, "_")
                if full not in histograms:
                    histograms[full] = HistogramMetricFamily(full, one.doc, labels=_labels(one.name))
                bounds = [*map(floatToGoString, one.bounds), "+Inf"]
                buckets = list(zip(bounds, map(float, one.counts), strict=True))
                histograms[full].add_metric([label for _, label in one.name.tags], buckets, one.sum)
        yield from families.values()
        yield from histograms.values()


def _family(
    families: dict[str, CounterMetricFamily | GaugeMetricFamily], name: MetricName
) -> CounterMetricFamily | GaugeMetricFamily:
    full = joined_name(name, "_")
    family = families.get(full)
    if family is None:
        kind = CounterMetricFamily if is_counter(name) else GaugeMetricFamily
        family = families[full] = kind(full, _DOCS[name.group, name.name], labels=_labels(name))
    return family


def _labels(name: MetricName) -> list[str]:
    return [key.replace("-", "_") for key, _ in name.tags]


_collectors: WeakKeyDictionary[CollectorRegistry, ProducerCollector] = WeakKeyDictionary()
