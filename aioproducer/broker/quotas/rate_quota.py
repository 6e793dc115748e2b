"""An upper bound for a rate, and how long to wait when it is exceeded (Kafka's ``Rate`` and ``QuotaUtils``)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from aioproducer.configs.config_def import INT_MAX
from aioproducer.metrics.sensor import Sensor


class QuotaWindow(NamedTuple):
    """The window over which rates are measured: ``quota.window.size.seconds`` and ``quota.window.num``."""

    seconds: float = 1.0
    samples: int = 11

    @property
    def milliseconds(self) -> int:
        """The length of one sample, which limits the throttle time for connections and request time."""
        return round(self.seconds * 1000)


KAFKAS_WINDOW = QuotaWindow()

_MANY = 1000

K = TypeVar("K", bound=Hashable)


class RateQuota:
    """A rate per second, and its bound. ``now`` is in seconds and never decreases."""

    __slots__ = ("_sensor", "_window", "bound", "last", "throttle_times")

    def __init__(self, bound: float, window: QuotaWindow) -> None:
        self._sensor = Sensor(window.seconds, window.samples)
        self._window = window
        self.bound = bound
        self.last = -math.inf
        """The time of the last record."""
        self.throttle_times = Sensor(window.seconds, window.samples)
        """Throttle times in milliseconds that this quota caused."""

    def record(self, value: float, now: float) -> None:
        self._sensor.record(value, now)
        self.last = now

    def rate(self, now: float) -> float:
        return self._sensor.rate(now)

    def throttle_ms(self, now: float) -> int:
        """How long nothing may be recorded until the rate has come down to the bound; 0 if it is not above.

        To bring the rate O, measured over W, down to the bound T, W has to grow by (O - T) / T * W.
        """
        rate = self._sensor.rate(now)
        if rate <= self.bound:
            return 0
        if self.bound <= 0:
            return INT_MAX
        return math.floor((rate - self.bound) / self.bound * self._sensor.window_size(now) * 1000 + 0.5)

    def forgotten(self, now: float) -> bool:
        """Whether all records are older than the window, so that none counts any more."""
        return now - self.last >= self._window.seconds * self._window.samples


class RateQuotas(Generic[K]):
    """A :class:`RateQuota` for each key. One is made when it is needed, and dropped when its records have expired."""

    def __init__(self, window: QuotaWindow) -> None:
        self._window = window
        self._rates: dict[K, RateQuota] = {}
        self._many = _MANY

    def get(self, key: K, bound: float, now: float) -> RateQuota:
        """The quota of this key, with its bound set to ``bound``."""
        rate = self._rates.get(key)
        if rate is None:
            if len(self._rates) >= self._many:
                self._rates = {key: rate for key, rate in self._rates.items() if not rate.forgotten(now)}
                self._many = max(_MANY, 2 * len(self._rates))
            rate = self._rates[key] = RateQuota(bound, self._window)
        rate.bound = bound
        return rate

    def __iter__(self) -> Iterator[tuple[K, RateQuota]]:
        return iter(self._rates.items())
