from __future__ import annotations

from aioproducer.metrics.sensor import Sensor
from aioproducer.metrics.waiting_time import WaitingTime


def test_however_many_wait_time_counts_once() -> None:
    waiting = WaitingTime(Sensor())
    waiting.set_waiting(True, 10.0)
    waiting.set_waiting(True, 11.0)
    waiting.set_waiting(False, 13.0)
    waiting.set_waiting(False, 20.0)
    assert waiting.total_ns(20.0) == 3e9
    waiting.set_waiting(True, 30.0)
    assert waiting.total_ns(31.0) == 4e9


def test_a_wait_that_is_not_over_counts_as_far_as_it_has_come() -> None:
    waiting = WaitingTime(Sensor())
    waiting.set_waiting(True, 0.0)
    assert (waiting.total_ns(6.0), waiting.total_ns(7.0)) == (6e9, 7e9)
    assert 0.19 < waiting.ratio(7.0) < 0.24  # of at least 30 s
    waiting.set_waiting(False, 8.0)
    assert waiting.total_ns(60.0) == 8e9


def test_the_ratio_is_one_at_most_and_falls_back_to_zero() -> None:
    waiting = WaitingTime(Sensor())
    waiting.set_waiting(True, 0.0)
    waiting.set_waiting(False, 500.0)
    assert waiting.ratio(500.0) == 1.0
    assert waiting.ratio(600.0) == 0.0


def test_asking_changes_nothing() -> None:
    sensor = Sensor()
    waiting = WaitingTime(sensor)
    waiting.set_waiting(True, 0.0)
    assert (waiting.total_ns(6.0), waiting.ratio(60.0)) == (6e9, 1.0)
    assert (sensor.total, sensor.count) == (0.0, 0)
