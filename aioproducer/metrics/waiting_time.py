"""How long there was somebody who waited."""

from __future__ import annotations

from aioproducer.metrics.sensor import Sensor


class WaitingTime:
    """The time during which anybody waited, however many did: what Kafka measures for the one thread that sends.

    Times in seconds, the total in nanoseconds, as Kafka has it.
    """

    def __init__(self, sensor: Sensor) -> None:
        self._sensor = sensor
        self._since: float | None = None

    def tell(self, waiting: bool, now: float) -> None:
        """Somebody waits from now on, or nobody does any more."""
        if self._since is not None:
            self._sensor.record(now - self._since, now)
        self._since = now if waiting else None

    def _up_to(self, now: float) -> None:
        if self._since is not None:
            self.tell(True, now)

    def total_ns(self, now: float) -> float:
        self._up_to(now)
        return self._sensor.total * 1e9

    def ratio(self, now: float) -> float:
        """The part of the time, 0 to 1. A long wait is recorded at its end, when it exceeds the windows measured."""
        self._up_to(now)
        return min(self._sensor.rate(now), 1.0)
