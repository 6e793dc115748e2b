"""Names and values of OpenTelemetry's semantic conventions for messaging, and its two metrics for producers."""

from __future__ import annotations

from typing import Final

from opentelemetry.metrics import MeterProvider, get_meter_provider

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
"""The version of the conventions."""

SENDING: Final = {
    "messaging.system": "kafka",
    "messaging.operation.name": "send",
    "messaging.operation.type": "send",
}
"""The attributes of all spans and metrics of records."""

DURATION_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""Seconds."""


class OperationMetrics:
    """``messaging.client.operation.duration`` and ``messaging.client.sent.messages``, by topic and error."""

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        provider = get_meter_provider() if meter_provider is None else meter_provider
        meter = provider.get_meter("aioproducer", schema_url=SCHEMA_URL)
        self._duration = meter.create_histogram(
            "messaging.client.operation.duration",
            unit="s",
            description="From send to the record's end",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )
        self._sent = meter.create_counter(
            "messaging.client.sent.messages", unit="{message}", description="Records that were part of a batch"
        )

    def ended(self, topic: str, seconds: float, error: BaseException | None, *, batched: bool) -> None:
        """Counts a record that has ended. One that is not ``batched`` was in no batch, and so was never sent."""
        attributes = {**SENDING, "messaging.destination.name": topic}
        if error is not None:
            attributes["error.type"] = type(error).__name__
        self._duration.record(seconds, attributes)
        if batched:
            self._sent.add(1, attributes)
