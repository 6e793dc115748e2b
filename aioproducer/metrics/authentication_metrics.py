"""Counts of authentications, failed and successful (Kafka's ``Selector``)."""

from __future__ import annotations

from aioproducer.metrics.registry import MetricGroup, MetricRegistry


class AuthenticationMetrics:
    """Totals over the connections to all brokers; without TLS and SASL nothing is counted."""

    def __init__(self, registry: MetricRegistry, group: MetricGroup) -> None:
        self._successful = registry.sensor()
        self._failed = registry.sensor()
        self._reauthenticated = registry.sensor()
        self._reauthentication_failed = registry.sensor()
        group.count_meter("successful-authentication", "connections that were authenticated", self._successful)
        group.count_meter("failed-authentication", "connections whose authentication failed", self._failed)
        group.count_meter("successful-reauthentication", "re-authentications (KIP-368)", self._reauthenticated)
        group.count_meter("failed-reauthentication", "failed re-authentications", self._reauthentication_failed)
        group.average_and_max(
            "reauthentication-latency", "milliseconds that re-authentication took", self._reauthenticated
        )

    def authenticated(self, now: float) -> None:
        self._successful.record(1.0, now)

    def failed(self, now: float) -> None:
        self._failed.record(1.0, now)

    def reauthenticated(self, seconds: float, now: float) -> None:
        """Records the duration of a re-authentication."""
        self._reauthenticated.record(seconds * 1000, now)

    def reauthentication_failed(self, now: float) -> None:
        self._reauthentication_failed.record(1.0, now)
