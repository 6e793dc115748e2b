from __future__ import annotations

from aioproducer.producer.batches.producer_batch import NO_LIMIT
from aioproducer.producer.windows.frame_limit import DOUBTED_AFTER, FrameLimit


def ended(limit: FrameLimit, at: float, *sizes: int) -> None:
    """The connection ends at this time; requests of these sizes, sent a second before, have no answer."""
    for size in sizes:
        limit.cut_off(size, at - 1, at)


def test_nothing_is_limited_by_a_broker_that_is_restarted() -> None:
    limit = FrameLimit()
    assert limit.most(0.0) == NO_LIMIT
    ended(limit, 10.0, 300, 200_000, 500)
    assert limit.most(10.0) == NO_LIMIT
    assert limit.largest_batch(10.0) == NO_LIMIT


def test_the_largest_request_is_suspect_from_the_second_end_on() -> None:
    limit = FrameLimit()
    ended(limit, 10.0, 300, 200_000)
    ended(limit, 20.0, 300, 250_000, 16_000)
    assert limit.most(20.0) == 100_000
    assert limit.largest_batch(20.0) == NO_LIMIT, "a batch alone may be larger"
    ended(limit, 30.0, 16_000, 200_000)
    assert limit.most(30.0) == limit.largest_batch(30.0) == 100_000


def test_each_end_halves_what_is_too_large_still() -> None:
    limit = FrameLimit()
    size = 1_000_000
    for at in (10.0, 20.0, 30.0, 40.0):
        ended(limit, at, size)
        size = min(size, limit.most(at))
    assert size == 125_000


def test_an_answer_to_a_request_as_large_clears_it() -> None:
    limit = FrameLimit()
    ended(limit, 10.0, 200_000)
    ended(limit, 20.0, 200_000)
    limit.answered(199_999)
    assert limit.most(20.0) == 100_000
    limit.answered(200_000)
    assert limit.most(20.0) == NO_LIMIT
    ended(limit, 30.0, 200_000)
    assert limit.most(30.0) == NO_LIMIT


def test_the_limit_is_forgotten_after_ten_minutes() -> None:
    limit = FrameLimit()
    ended(limit, 10.0, 200_000)
    ended(limit, 20.0, 200_000)
    later = 20.0 + DOUBTED_AFTER
    assert limit.most(later) == 100_000
    assert limit.most(later + 1) == NO_LIMIT
    ended(limit, later + 1, 900_000)
    assert limit.most(later + 1) == NO_LIMIT
    ended(limit, later + 2.5, 900_000)
    assert limit.most(later + 2.5) == 450_000
