"""How a client fares in saying who it is, and in asking brokers who they are (Kafka's ``Selector``)."""

from __future__ import annotations

from aioproducer.metrics.registry import MetricGroup, MetricRegistry


class AuthenticationMetrics:
    """In all, over the connections to all brokers; without TLS and SASL nothing is counted."""

    def __init__(self, registry: MetricRegistry, group: MetricGroup) -> None:
        self._successful = registry.sensor()
        self._failed = registry.sensor()
        self._reauthenticated = registry.sensor()
        self._reauthentication_failed = registry.sensor()
        group.count_meter(
            "successful-authentication", "connections whose broker and client believe each other", self._successful
        )
        group.count_meter("failed-authentication", "connections on which one did not believe the other", self._failed)
        group.count_meter(
            "successful-reauthentication", "times the client said anew who it is (KIP-368)", self._reauthenticated
        )
        group.count_meter(
            "failed-reauthentication", "times the client was not believed anew", self._reauthentication_failed
        )
        group.average_and_max(
            "reauthentication-latency", "milliseconds of saying anew who the client is", self._reauthenticated
        )

    def authenticated(self, now: float) -> None:
        self._successful.record(1.0, now)

    def failed(self, now: float) -> None:
        self._failed.record(1.0, now)

    def reauthenticated(self, seconds: float, now: float) -> None:
        """It took so long."""
        self._reauthenticated.record(seconds * 1000, now)

    def reauthentication_failed(self, now: float) -> None:
        self._reauthentication_failed.record(1.0, now)
