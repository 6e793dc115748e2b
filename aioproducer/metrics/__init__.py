"""A client's metrics, under Kafka's names. They know no event loop and no network: callers pass ``now``.

Hooks record once per batch, request or answer, never per record; everything else is computed when read.

    producer_metrics.py   the metrics of a producer; its parts:
    network_metrics.py, topic_metrics.py, window_metrics.py, authentication_metrics.py
                          traffic of connections; of topics; in-flight windows; authentications
    registry.py           the metrics that exist, and how each is computed
    sensor.py             rates, averages and maxima over the last windows of time
    distribution.py       counts of values by size, which add up over producers
    histogram.py          percentiles
    waiting_time.py       the time during which records waited
    metric_name.py        the name of a metric
    catalogue.py          all names, with descriptions
    snapshot.py           all values at one moment
    text_table.py         a snapshot as text
    reporter.py           publishes metrics elsewhere
"""

from aioproducer.metrics.catalogue import every_distribution, every_metric
from aioproducer.metrics.distribution import Buckets
from aioproducer.metrics.metric_name import MetricName
from aioproducer.metrics.producer_metrics import ProducerMetrics
from aioproducer.metrics.reporter import MetricsReporter
from aioproducer.metrics.snapshot import MetricsSnapshot

__all__ = [
    "Buckets",
    "MetricName",
    "MetricsReporter",
    "MetricsSnapshot",
    "ProducerMetrics",
    "every_distribution",
    "every_metric",
]
