"""Counts the authentications of a listener's clients."""

from __future__ import annotations

from collections.abc import Iterator

from aioproducer.metrics.sensor import Sensor


class AuthenticationMetrics:
    """The authentication sensors of Kafka's ``Selector``, for one listener."""

    def __init__(self) -> None:
        self._successful = Sensor()
        self._failed = Sensor()
        self._reauthenticated = Sensor()
        self._reauthentication_failed = Sensor()
        self.expired = Sensor()
        """Connections that were closed because they sent requests after their session had expired."""

    def authenticated(self, now: float) -> None:
        self._successful.record(1, now)

    def reauthenticated(self, seconds: float, now: float) -> None:
        """A client has re-authenticated, which took ``seconds``."""
        self._reauthenticated.record(seconds * 1000, now)

    def failed(self, now: float, *, again: bool) -> None:
        """An authentication has failed; with ``again`` it was a re-authentication."""
        (self._reauthentication_failed if again else self._failed).record(1, now)

    def killed(self, now: float) -> None:
        """An expired connection was closed."""
        self.expired.record(1, now)

    def figures(self, now: float) -> Iterator[tuple[str, float]]:
        """The figures under Kafka's names."""
        for name, sensor in (
            ("successful-authentication", self._successful),
            ("failed-authentication", self._failed),
            ("successful-reauthentication", self._reauthenticated),
            ("failed-reauthentication", self._reauthentication_failed),
        ):
            yield f"{name}-rate", sensor.count_rate(now)
            yield f"{name}-total", float(sensor.count)
        yield "reauthentication-latency-avg", self._reauthenticated.average(now)
        yield "reauthentication-latency-max", self._reauthenticated.maximum(now)
        yield "expired-connections-killed-count", float(self.expired.count)
