from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.metrics.sensor import Sensor


def test_an_empty_sensor_has_zeros_and_no_averages() -> None:
    sensor = Sensor()
    assert (sensor.rate(5.0), sensor.count_rate(5.0), sensor.total, sensor.count) == (0.0, 0.0, 0.0, 0)
    assert math.isnan(sensor.average(5.0))
    assert math.isnan(sensor.maximum(5.0))


def test_figures_of_one_window() -> None:
    sensor = Sensor()
    for value in (10, 40, 10):
        sensor.record(value, 100.0)
    assert (sensor.total, sensor.count) == (60.0, 3)
    assert (sensor.average(100.0), sensor.maximum(100.0)) == (20.0, 40.0)


def test_a_rate_counts_the_windows_before_the_present_one_as_whole() -> None:
    sensor = Sensor(window=30.0, samples=2)
    sensor.record(60, 0.0)
    assert sensor.rate(0.0) == 2.0  # over 30 s and 0 s
    assert sensor.rate(15.0) == pytest.approx(60 / 45)
    assert sensor.count_rate(15.0) == pytest.approx(1 / 45)
    sensor.record(60, 30.0)  # the second window begins
    assert sensor.rate(45.0) == pytest.approx(120 / 45)
    sensor.record(60, 60.0)  # the third: the first overlaps the two requested ones
    assert sensor.rate(60.0) == pytest.approx(120 / 30)  # but nothing was recorded in it for 60 s
    assert (sensor.total, sensor.count) == (180.0, 3)


def test_a_window_that_overlaps_counts_as_long_as_its_last_value_is_recent() -> None:
    sensor = Sensor(window=10.0, samples=2)
    sensor.record(1, 0.0)
    sensor.record(1, 9.0)
    sensor.record(1, 10.0)
    sensor.record(1, 20.0)
    assert sensor.count_rate(28.0) == pytest.approx(4 / 28)
    assert sensor.count_rate(29.0) == pytest.approx(2 / 19)


def test_an_old_sample_is_forgotten() -> None:
    sensor = Sensor(window=1.0, samples=2)
    sensor.record(100, 0.0)
    sensor.record(1, 1.5)
    assert sensor.maximum(1.9) == 100
    assert sensor.maximum(2.0) == 1
    assert math.isnan(sensor.maximum(3.5))
    assert sensor.rate(100.0) == 0.0
    sensor.record(7, 100.0)
    assert (sensor.average(100.0), sensor.rate(100.0)) == (7.0, 7.0)


def test_a_sensor_above_the_level_takes_nothing() -> None:
    sensor = Sensor(recording=False)
    sensor.record(5, 1.0)
    assert (sensor.total, sensor.count, sensor.rate(1.0)) == (0.0, 0, 0.0)


def test_windows_of_no_length() -> None:
    """Kafka allows metrics.sample.window.ms=0: nothing counts, and nothing is divided by."""
    sensor = Sensor(window=0.0, samples=1)
    sensor.record(5, 1.0)
    assert (sensor.rate(1.0), sensor.total) == (0.0, 5.0)
    assert math.isnan(sensor.average(1.0))


class Model:
    """Kafka's rules, written down plainly: every value kept, windows cut anew for each question."""

    def __init__(self, window: float, samples: int) -> None:
        self.window, self.samples = window, samples
        self.windows: list[list[tuple[float, float]]] = []

    def record(self, value: float, now: float) -> None:
        if not self.windows or now - self.windows[-1][0][0] >= self.window:
            self.windows.append([])
        self.windows[-1].append((now, value))

    def live(self, now: float) -> list[list[tuple[float, float]]]:
        recent = self.windows[-(self.samples + 1) :]
        return [window for window in recent if now - window[-1][0] < self.window * self.samples]

    def rate(self, now: float) -> float:
        live = self.live(now)
        elapsed = now - live[0][0][0] if live else 0.0
        whole = int(elapsed // self.window)
        if whole < self.samples - 1:
            elapsed += (self.samples - 1 - whole) * self.window
        return sum(value for window in live for _, value in window) / max(elapsed, 0.001)


@given(
    window=st.sampled_from([1.0, 5.0, 30.0]),
    samples=st.integers(1, 4),
    steps=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 1000)), min_size=1, max_size=60),
    later=st.integers(0, 100),
)
def test_as_kafka_counts(window: float, samples: int, steps: list[tuple[int, int]], later: int) -> None:
    sensor, model, now = Sensor(window, samples), Model(window, samples), 0.0
    for wait, value in steps:
        now += wait
        sensor.record(value, now)
        model.record(value, now)
        assert sensor.rate(now) == pytest.approx(model.rate(now))
    now += later
    values = [value for live in model.live(now) for _, value in live]
    assert sensor.rate(now) == pytest.approx(model.rate(now))
    assert sensor.average(now) == pytest.approx(sum(values) / len(values) if values else math.nan, nan_ok=True)
    assert sensor.maximum(now) == pytest.approx(max(values, default=math.nan), nan_ok=True)
    assert (sensor.total, sensor.count) == (sum(value for _, value in steps), len(steps))
