from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.quotas.rate_quota import QuotaWindow, RateQuota


def test_nothing_to_wait_for_up_to_the_bound() -> None:
    quota = RateQuota(10, QuotaWindow(1.0, 11))
    quota.record(100, 5.0)
    assert quota.rate(5.0) == 10
    assert quota.throttle_ms(5.0) == 0


def test_the_wait_brings_the_rate_down_to_the_bound() -> None:
    quota = RateQuota(10, QuotaWindow(1.0, 11))
    quota.record(100, 5.0)
    quota.record(20, 5.0)
    assert quota.throttle_ms(5.0) == 2000  # 120 over 10 s are 12 a second; over 12 s they are 10


def test_another_bound() -> None:
    quota = RateQuota(10, QuotaWindow())
    quota.record(120, 0.0)
    quota.bound = 12
    assert quota.throttle_ms(0.0) == 0


def test_negative_records_do_not_count() -> None:
    quota = RateQuota(1, QuotaWindow(1.0, 2))
    quota.record(1, 0.0)
    quota.record(1, 0.0)
    assert quota.throttle_ms(0.0) == 1000
    quota.record(-1, 0.0)
    assert quota.throttle_ms(0.0) == 0


def test_forgotten_when_no_window_has_anything() -> None:
    quota = RateQuota(1, QuotaWindow(2.0, 3))
    assert quota.forgotten(0.0)
    quota.record(1, 10.0)
    assert not quota.forgotten(15.9)
    assert quota.forgotten(16.0)
    assert quota.rate(16.0) == 0


@given(
    st.lists(st.tuples(st.floats(0, 3), st.integers(1, 50)), min_size=1),
    st.integers(1, 100),
    st.integers(1, 12),
)
def test_after_the_wait_the_rate_over_the_grown_window_is_the_bound(
    recorded: list[tuple[float, int]], bound: int, samples: int
) -> None:
    quota, now = RateQuota(bound, QuotaWindow(1.0, samples)), 0.0
    for pause, value in recorded:
        now += pause
        quota.record(value, now)
    wait = quota.throttle_ms(now) / 1000
    rate = quota.rate(now)
    if rate <= bound:
        assert wait == 0
    else:
        window = quota._sensor.window_size(now)
        assert rate * window / (window + wait) == pytest.approx(bound, rel=1e-3, abs=bound * 0.0006 / window)
