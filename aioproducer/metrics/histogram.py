"""The distribution of values.

Kafka keeps a sample of 1028 values, the newer the likelier (Yammer's biased histogram). Here every value is counted, in
buckets a thirty-second as wide as their values are large: a percentile is off by 1.6 % at most, is the same for the
same values, and a histogram has as many buckets as there were different sizes of values, a few hundred at most.
"""

from __future__ import annotations

import math
from typing import Final, final

from mypy_extensions import i64

_FINE: Final = 32
"""Values below this are counted exactly; above, each power of two has this many buckets."""


def bucket_of(value: int) -> int:
    """The bucket of a whole number, 0 or more."""
    if value < _FINE:
        return value
    shift = value.bit_length() - 6
    return _FINE * shift + (value >> shift)


def middle_of(bucket: int) -> float:
    """The value that stands for all of a bucket."""
    if bucket < _FINE:
        return float(bucket)
    shift = bucket // _FINE - 1
    return float((bucket - _FINE * shift) << shift) + ((1 << shift) - 1) / 2


@final
class Histogram:
    """Percentiles, mean and maximum of the last one to two ``window`` seconds, and the lifetime count.

    Values are whole numbers; negative ones are taken for 0. ``now`` is in seconds. Reading changes nothing.
    """

    def __init__(self, window: float = 150.0) -> None:
        self._window = window
        self._start: float = -math.inf
        self._new: dict[int, int] = {}
        self._old: dict[int, int] = {}
        self.count: i64 = 0

    def record(self, value: int, now: float) -> None:
        if now - self._start >= self._window:
            self._old = self._new if now - self._start < 2.0 * self._window else {}
            self._new = {}
            self._start = now
        bucket = bucket_of(value) if value > 0 else 0
        self._new[bucket] = self._new.get(bucket, 0) + 1
        self.count += 1

    def percentile(self, rank: float, now: float) -> float:
        """The value that ``rank`` (0 to 1) of the values do not exceed; NaN if there are none."""
        counts = self._counts(now)
        left = math.ceil(rank * float(sum(counts.values())))
        for bucket in sorted(counts):
            left -= counts[bucket]
            if left <= 0:
                return middle_of(bucket)
        return math.nan

    def mean(self, now: float) -> float:
        """The average of the values; NaN if there are none."""
        counts = self._counts(now)
        total: float = 0.0
        for bucket, count in counts.items():
            total += middle_of(bucket) * float(count)
        return total / float(sum(counts.values())) if counts else math.nan

    def maximum(self, now: float) -> float:
        """The largest value; NaN if there are none."""
        counts = self._counts(now)
        return middle_of(max(counts)) if counts else math.nan

    def _counts(self, now: float) -> dict[int, int]:
        age = now - self._start
        if age >= 2.0 * self._window:
            return {}
        if age >= self._window:
            return self._new
        counts = dict(self._old)
        for bucket, count in self._new.items():
            counts[bucket] = counts.get(bucket, 0) + count
        return counts
