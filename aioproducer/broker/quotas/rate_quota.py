"""An upper bound for a rate, and how long to wait when it is exceeded (Kafka's ``Rate`` and ``QuotaUtils``)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from aioproducer.configs.config_def import INT_MAX
from aioproducer.metrics.sensor import Sensor


class QuotaWindow(NamedTuple):
    """Over what time rates are measured: ``quota.window.size.seconds`` and ``quota.window.num``."""

    seconds: float = 1.0
    samples: int = 11

    @property
    def milliseconds(self) -> int:
        """Of one sample: what a wait for connections and request time is capped to."""
        return round(self.seconds * 1000)


KAFKAS_WINDOW = QuotaWindow()

_MANY = 1000

K = TypeVar("K", bound=Hashable)


class RateQuota:
    """What was recorded, per second, and the most that it may be. ``now`` is in seconds and never goes back."""

    __slots__ = ("_sensor", "_window", "bound", "last", "throttle_times")

    def __init__(self, bound: float, window: QuotaWindow) -> None:
        self._sensor = Sensor(window.seconds, window.samples)
        self._window = window
        self.bound = bound
        self.last = -math.inf
        """When something was recorded last."""
        self.throttle_times = Sensor(window.seconds, window.samples)
        """Milliseconds that somebody had to wait because of it."""

    def record(self, value: float, now: float) -> None:
        self._sensor.record(value, now)
        self.last = now

    def rate(self, now: float) -> float:
        return self._sensor.rate(now)

    def throttle_ms(self, now: float) -> int:
        """How long nothing may be recorded for the rate to come down to the bound; 0 if it is not above.

        To bring the rate O, measured over W, down to the bound T, W has to grow by (O - T) / T * W.
        """
        rate = self._sensor.rate(now)
        if rate <= self.bound:
            return 0
        if self.bound <= 0:
            return INT_MAX
        return math.floor((rate - self.bound) / self.bound * self._sensor.window_size(now) * 1000 + 0.5)

    def forgotten(self, now: float) -> bool:
        """Nothing of what was recorded counts any more."""
        return now - self.last >= self._window.seconds * self._window.samples


class RateQuotas(Generic[K]):
    """A :class:`RateQuota` for each key, made when it is needed; those of which nothing counts any more are let go."""

    def __init__(self, window: QuotaWindow) -> None:
        self._window = window
        self._rates: dict[K, RateQuota] = {}
        self._many = _MANY

    def get(self, key: K, bound: float, now: float) -> RateQuota:
        """The key's, with ``bound`` from now on."""
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
