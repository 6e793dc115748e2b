"""What a client counts and measures, in Kafka's names. Knows no event loop and no network: callers pass ``now``.

Hooks record once per batch, request or answer, never per record; everything else is computed when read.
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
