from __future__ import annotations

from aioproducer.broker.quotas.rate_quota import QuotaWindow
from aioproducer.broker.quotas.token_bucket import TokenBucket


def test_a_burst_costs_what_it_is() -> None:
    bucket = TokenBucket(5, QuotaWindow(1.0, 100), 0.0)
    bucket.take(560, 0.0)  # the example of Kafka's: 500 are there
    assert bucket.tokens(0.0) == -60
    assert bucket.throttle_ms(0.0) == 12000
    assert bucket.throttle_ms(12.0) == 0
    assert bucket.tokens(13.0) == 5


def test_it_never_holds_more_than_its_windows_bring() -> None:
    bucket = TokenBucket(2, QuotaWindow(1.0, 3), 0.0)
    assert bucket.tokens(1000.0) == 6
    bucket.bound = 1
    assert bucket.tokens(1000.0) == 3
