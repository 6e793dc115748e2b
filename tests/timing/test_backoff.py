from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.timing.backoff import JITTER, ExponentialBackoff


class Even(Random):
    """Without jitter."""

    def uniform(self, a: float, b: float) -> float:
        return 0.0


@given(failures=st.integers(1, 2**40), seed=st.integers(0, 2**32))
def test_doubles_up_to_the_longest_within_the_jitter(failures: int, seed: int) -> None:
    middle = min(0.1 * 2.0 ** min(failures - 1, 20), 1.0)
    assert ExponentialBackoff(100, 1000, Even()).wait(failures) == pytest.approx(middle)
    wait = ExponentialBackoff(100, 1000, Random(seed)).wait(failures)
    assert middle * (1 - JITTER) <= wait <= min(middle * (1 + JITTER), 1.0)


@given(failures=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_no_wait_is_longer_than_the_longest(failures: int, seed: int) -> None:
    backoff = ExponentialBackoff(100, 1000, Random(seed))
    assert backoff.wait(failures) <= backoff.longest == 1.0


def test_waits_are_spread_even_when_they_are_longest() -> None:
    waits = {ExponentialBackoff(100, 1000, Random(seed)).wait(20) for seed in range(100)}
    assert len(waits) > 30
    assert min(waits) < 0.85


def test_the_longest_wins_over_the_first() -> None:
    assert 0.8 <= ExponentialBackoff(5000, 1000, Random(0)).wait(1) <= 1.0
    assert ExponentialBackoff(0, 1000, Random(0)).wait(5) == 0.0
