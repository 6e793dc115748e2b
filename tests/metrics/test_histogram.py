from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.metrics.histogram import Histogram, bucket_of, middle_of


def test_an_empty_histogram_has_no_values() -> None:
    histogram = Histogram()
    assert histogram.count == 0
    assert math.isnan(histogram.percentile(0.5, 1.0))
    assert math.isnan(histogram.mean(1.0))
    assert math.isnan(histogram.maximum(1.0))


def test_small_values_are_exact() -> None:
    histogram = Histogram()
    for value in (1, 2, 3, 4, 30, -5):
        histogram.record(value, 0.0)
    assert [histogram.percentile(rank, 0.0) for rank in (0.0, 0.5, 0.99, 1.0)] == [0, 2, 30, 30]
    assert (histogram.mean(0.0), histogram.maximum(0.0), histogram.count) == (40 / 6, 30, 6)


def test_a_value_older_than_two_windows_is_forgotten() -> None:
    histogram = Histogram(window=10.0)
    histogram.record(5, 0.0)
    histogram.record(1, 10.0)
    assert histogram.maximum(19.9) == 5
    assert histogram.maximum(20.0) == 1
    assert math.isnan(histogram.maximum(30.0))
    histogram.record(2, 100.0)
    assert (histogram.maximum(100.0), histogram.count) == (2, 3)


@given(st.integers(0, 2**50))
def test_a_bucket_is_narrow(value: int) -> None:
    assert middle_of(bucket_of(value)) == pytest.approx(value, rel=1 / 63)
    assert bucket_of(value) <= bucket_of(value + 1) <= bucket_of(value) + 1


@given(st.lists(st.integers(0, 10**7), min_size=1), st.floats(0, 1))
def test_percentiles_are_those_of_the_sorted_values(values: list[int], rank: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.record(value, 0.0)
    expected = sorted(values)[max(math.ceil(rank * len(values)) - 1, 0)]
    assert histogram.percentile(rank, 0.0) == pytest.approx(expected, rel=1 / 63)
    assert histogram.maximum(0.0) == pytest.approx(max(values), rel=1 / 63)


def test_memory_is_bounded() -> None:
    histogram = Histogram()
    for value in range(0, 3_600_000_000, 900_001):
        histogram.record(value, 0.0)
    assert len(histogram._new) < 900
