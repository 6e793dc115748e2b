from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.security.refresh_window import RefreshWindow


@pytest.mark.parametrize(
    ("lifetime", "earliest", "latest"),
    [
        (3600, 0.8 * 3600, 0.85 * 3600),
        (1200, 900, 900),  # 300 s before its end
        (300, 0.8 * 300, 0.85 * 300),  # too short for both
    ],
)
def test_kafkas_defaults(lifetime: float, earliest: float, latest: float) -> None:
    times = [RefreshWindow().refresh_at(1000, 1000 + lifetime, Random(seed)) - 1000 for seed in range(50)]
    assert earliest <= min(times) <= max(times) <= latest


def test_not_within_the_min_period() -> None:
    assert RefreshWindow(0.5, 0, min_period=100, buffer=0).refresh_at(0, 150, Random(0)) == 100


@given(
    st.floats(0.5, 1),
    st.floats(0, 0.25),
    st.integers(0, 900),
    st.integers(0, 3600),
    st.floats(0.001, 1e6),
    st.integers(),
)
def test_never_before_it_was_got_and_hardly_after_its_end(
    factor: float, jitter: float, min_period: int, buffer: int, lifetime: float, seed: int
) -> None:
    window = RefreshWindow(factor, jitter, min_period, buffer)
    at = window.refresh_at(50, 50 + lifetime, Random(seed))
    assert 50 <= at <= 50 + max(lifetime * (factor + jitter), lifetime) + 1e-6
    if lifetime > min_period + buffer + 1e-6:
        assert min_period <= at - 50 + 1e-6
        assert at <= 50 + lifetime - buffer + 1e-6
