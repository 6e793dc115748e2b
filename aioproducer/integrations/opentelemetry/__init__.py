"""A producer's metrics and traces for OpenTelemetry; needs the extra ``opentelemetry``.

::

    KafkaProducer(
        bootstrap_servers="localhost:9092",
        client_id="orders",
        interceptor_classes=[TracingInterceptor(client_id="orders")],
        metric_reporters=[OpenTelemetryReporter()],
    )

The files:

    reporter.py       the metrics, as observable instruments
    tracing.py        a span for every record
    conventions.py    names of OpenTelemetry's semantic conventions, and its metrics for producers
"""

try:
    import opentelemetry.trace  # noqa: F401  of the library that every file here imports
except ModuleNotFoundError as error:
    raise ImportError(
        "aioproducer.integrations.opentelemetry needs opentelemetry-api: pip install 'aioproducer[opentelemetry]'"
    ) from error

from aioproducer.integrations.opentelemetry.reporter import OpenTelemetryReporter
from aioproducer.integrations.opentelemetry.tracing import TracingInterceptor

__all__ = ["OpenTelemetryReporter", "TracingInterceptor"]
