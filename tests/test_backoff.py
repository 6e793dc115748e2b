from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.backoff import JITTER, backoff


class Even(Random):
    """Without jitter."""

    def uniform(self, a: float, b: float) -> float:
        return 0.0


@given(failures=st.integers(1, 2**40), seed=st.integers(0, 2**32))
def test_doubles_up_to_the_longest_within_the_jitter(failures: int, seed: int) -> None:
    middle = min(0.1 * 2.0 ** min(failures - 1, 20), 1.0)
    assert backoff(failures, 0.1, 1.0, Even()) == pytest.approx(middle)
    assert middle * (1 - JITTER) <= backoff(failures, 0.1, 1.0, Random(seed)) <= min(middle * (1 + JITTER), 1.0)


def test_waits_are_spread_even_when_they_are_longest() -> None:
    waits = {backoff(20, 0.1, 1.0, Random(seed)) for seed in range(100)}
    assert len(waits) > 30
    assert min(waits) < 0.85


def test_the_longest_wins_over_the_first() -> None:
    assert 0.8 <= backoff(1, 5.0, 1.0, Random(0)) <= 1.0
    assert backoff(5, 0.0, 1.0, Random(0)) == 0.0
