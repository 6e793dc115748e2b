"""Measures the time during which at least one record waited."""

from __future__ import annotations

from aioproducer.metrics.sensor import Sensor


class WaitingTime:
    """The time during which at least one record waited; Kafka measures the same for its one sending thread. Times are
    in seconds, the total in nanoseconds, as in Kafka.
    """

    def __init__(self, sensor: Sensor) -> None:
        self._sensor = sensor
        self._since: float | None = None

    def set_waiting(self, waiting: bool, now: float) -> None:
        """The first wait begins, or the last one ends."""
        if self._since is not None:
            self._sensor.record(now - self._since, now)
        self._since = now if waiting else None

    def _so_far(self, now: float) -> float:
        since = self._since
        return 0.0 if since is None else now - since

    def total_ns(self, now: float) -> float:
        return (self._sensor.total + self._so_far(now)) * 1e9

    def ratio(self, now: float) -> float:
        """The part of the time, 0 to 1. A long wait is recorded at its end, when it exceeds the windows measured."""
        return min(self._sensor.rate(now) + self._so_far(now) / self._sensor.window_size(now), 1.0)
