from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.accumulator.compression_ratio import CompressionRatioEstimator

ratio = st.floats(0.001, 2.0)


def test_nothing_is_expected_before_anything_is_known() -> None:
    ratios = CompressionRatioEstimator()
    assert ratios.ratio("t") == 1.0
    assert ratios.limit("t", 16384) == int(16384 / 1.05)


def test_it_falls_slowly_and_rises_at_once() -> None:
    ratios = CompressionRatioEstimator()
    ratios.observe("t", 0.25)
    assert ratios.ratio("t") == pytest.approx(0.995)
    for _ in range(200):
        ratios.observe("t", 0.25)
    assert ratios.ratio("t") == 0.25
    ratios.observe("t", 0.26)
    assert ratios.ratio("t") == pytest.approx(0.30)
    ratios.observe("t", 0.8)
    assert ratios.ratio("t") == 0.8


def test_topics_have_ratios_of_their_own() -> None:
    ratios = CompressionRatioEstimator()
    ratios.observe("text", 0.2)
    assert ratios.ratio("images") == 1.0


@pytest.mark.parametrize(("observed", "after"), [(0.3, 1.0), (1.2, 1.2)])
def test_after_a_split_nothing_is_expected(observed: float, after: float) -> None:
    ratios = CompressionRatioEstimator()
    for _ in range(50):
        ratios.observe("t", 0.2)
    ratios.reset("t", observed)
    assert ratios.ratio("t") == after


def test_a_batch_is_never_fuller_than_so_many_times_its_size() -> None:
    ratios = CompressionRatioEstimator()
    for _ in range(200):
        ratios.observe("t", 0.001)
    assert ratios.limit("t", 1000) == 16_000
    assert ratios.limit("t", 1) == 16


@given(observations=st.lists(ratio, min_size=1, max_size=50), last=ratio)
def test_it_goes_towards_what_is_observed_and_never_beyond_the_safe_side(
    observations: list[float], last: float
) -> None:
    ratios = CompressionRatioEstimator()
    for observed in observations:
        ratios.observe("t", observed)
    before = ratios.ratio("t")
    ratios.observe("t", last)
    after = ratios.ratio("t")
    if last >= before:
        assert last <= after <= max(before + 0.05, last)
    else:
        assert max(last, before - 0.005) == after
    assert ratios.limit("t", 1000) <= max(1, 1000 / last)
