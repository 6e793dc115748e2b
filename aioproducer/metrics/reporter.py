"""Reporters, which publish metrics elsewhere (Kafka's ``MetricsReporter``)."""

from __future__ import annotations

from typing import Any, Protocol


class MetricsReporter(Protocol):
    """What ``metric.reporters`` names: it is handed the producer when that starts, and asks it when it likes.

    Kafka tells a reporter of each metric that comes and goes; here ``producer.metrics()`` has all there are, and
    ``producer.health()`` what is not well. A reporter that raises is logged and passed over: metrics are no reason not
    to deliver.
    """

    def init(self, producer: Any) -> None:
        """The KafkaProducer has started, in the running loop."""

    async def close(self) -> None:
        """It is closing: everything is delivered or has failed. Cancelled when the time-out of that close is over."""
