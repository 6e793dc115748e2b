"""Figures over the last few windows of time.

Kafka keeps samples per statistic (``SampledStat``); all those of a sensor are recorded at the same times, so here one
row of samples gives sum, count, average and maximum. Times are in seconds.
"""

from __future__ import annotations

import math
from typing import Final, final

from mypy_extensions import i64

_NOTHING: Final = -math.inf


@final
class Sample:
    """The values recorded in one window."""

    def __init__(self, start: float) -> None:
        self.start = start
        self.last = start
        self.count: i64 = 0
        self.sum: float = 0.0
        self.most: float = _NOTHING


@final
class Sensor:
    """Records values; gives their rate, average and maximum over the last ``samples`` windows, and lifetime totals.

    ``window`` is metrics.sample.window.ms in seconds, ``samples`` metrics.num.samples. It records nothing unless
    ``recording`` (metrics.recording.level). Reading changes nothing.
    """

    def __init__(self, window: float = 30.0, samples: i64 = 2, recording: bool = True) -> None:
        self._window = window
        self._kept = samples
        self._recording = recording
        self._samples: list[Sample] = []
        self.total: float = 0.0
        """The sum of all values."""
        self.count: i64 = 0
        """How many there were."""

    def record(self, value: float, now: float) -> None:
        """Records one value."""
        if not self._recording:
            return
        self.total += value
        self.count += 1
        samples = self._samples
        sample: Sample
        if samples and now - samples[-1].start < self._window:
            sample = samples[-1]
        else:
            sample = Sample(now)
            samples.append(sample)
            if len(samples) > self._kept + 1:  # one more than configured: the oldest counts while it overlaps
                samples.pop(0)
        sample.last = now
        sample.count += 1
        sample.sum += value
        if value > sample.most:
            sample.most = value

    def rate(self, now: float) -> float:
        """The sum of the values per second (``Rate`` of ``WindowedSum``)."""
        total: float = 0.0
        for sample in self._samples:
            if self._counts(sample, now):
                total += sample.sum
        return total / self.window_size(now)

    def count_rate(self, now: float) -> float:
        """How many values there were per second (``Rate`` of ``WindowedCount``)."""
        count: float = 0.0
        for sample in self._samples:
            if self._counts(sample, now):
                count += float(sample.count)
        return count / self.window_size(now)

    def average(self, now: float) -> float:
        """The mean of the values; NaN if there are none (``Avg``)."""
        total: float = 0.0
        count: float = 0.0
        for sample in self._samples:
            if self._counts(sample, now):
                total += sample.sum
                count += float(sample.count)
        return total / count if count > 0.0 else math.nan

    def maximum(self, now: float) -> float:
        """The largest value; NaN if there are none (``Max``)."""
        most: float = _NOTHING
        for sample in self._samples:
            if self._counts(sample, now) and sample.most > most:
                most = sample.most
        return math.nan if most == _NOTHING else most

    def window_size(self, now: float) -> float:
        """The seconds that a rate is over: all windows but the last are taken as whole, however short they were.

        Otherwise the first second of a producer's life would give a rate that no minute can sustain.
        """
        elapsed: float = 0.0
        for sample in self._samples:
            if self._counts(sample, now):
                elapsed = now - sample.start
                break
        missing = float(self._kept - 1)
        if self._window > 0.0:
            missing -= float(int(elapsed / self._window))
        if missing > 0.0:
            elapsed += missing * self._window
        return elapsed if elapsed > 0.001 else 0.001

    def _counts(self, sample: Sample, now: float) -> bool:
        return now - sample.last < self._window * float(self._kept)
