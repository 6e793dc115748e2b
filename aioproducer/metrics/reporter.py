"""Reporters, which publish metrics elsewhere (Kafka's ``MetricsReporter``)."""

from __future__ import annotations

from typing import Any, Protocol


class MetricsReporter(Protocol):
    """A reporter of ``metric.reporters``: it gets the producer at its start, and reads the metrics at any time.

    Kafka notifies a reporter of each metric added and removed; here ``producer.metrics()`` has all metrics, and
    ``producer.health()`` what is wrong. A reporter that raises is logged and skipped: metrics must not stop deliveries.
    """

    def init(self, producer: Any) -> None:
        """Called when the KafkaProducer has started, in the running loop."""

    async def close(self) -> None:
        """Called by ``close``, when every record has ended. Cancelled when the time-out of that close is over."""
