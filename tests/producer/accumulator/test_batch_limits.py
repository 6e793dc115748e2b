from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.accumulator.batch_limits import DOUBTED_AFTER, TRIED_EVERY, BatchLimits
from aioproducer.producer.batches.producer_batch import NO_LIMIT


def test_a_topic_has_no_batch_limit_at_first() -> None:
    limits = BatchLimits()
    assert limits.most("t") == NO_LIMIT
    limits.taken("t", 1000)
    assert limits.most("t") == NO_LIMIT
    assert limits.known("other") is None


def test_after_a_refusal_the_largest_that_was_taken_or_half_of_the_refused() -> None:
    limits = BatchLimits()
    limits.refused("t", 1000, 1.0)
    assert limits.most("t") == 500
    limits.taken("t", 400)
    assert limits.most("t") == 500
    limits.taken("t", 700)
    assert limits.most("t") == 700
    assert limits.most("other") == NO_LIMIT


def test_a_limit_that_was_lowered_is_noticed() -> None:
    limits = BatchLimits()
    limits.taken("t", 100_000)
    limits.refused("t", 50_000, 1.0)
    assert limits.most("t") == 25_000


def test_a_limit_that_was_raised_is_noticed() -> None:
    limits = BatchLimits()
    limits.refused("t", 1000, 1.0)
    limits.taken("t", 1000)
    assert limits.most("t") == NO_LIMIT


def test_a_refusal_is_doubted_after_a_time_by_one_batch_and_what_was_taken_is_not() -> None:
    limits = BatchLimits()
    assert not limits.take_trial("t", 0.0)
    limits.refused("t", 1000, 1.0)
    limits.taken("t", 800)
    assert not limits.take_trial("t", DOUBTED_AFTER)
    now = 1.0 + DOUBTED_AFTER
    assert limits.take_trial("t", now)
    assert (limits.most("t", trial=True), limits.most("t")) == (2000, 800)
    assert not limits.take_trial("t", now)
    assert limits.take_trial("t", now + TRIED_EVERY)  # there was no answer
    limits.refused("t", 1500, now + TRIED_EVERY)
    assert limits.most("t") == 800
    assert not limits.take_trial("t", now + DOUBTED_AFTER)
    assert limits.take_trial("t", now + TRIED_EVERY + DOUBTED_AFTER)
    limits.taken("t", 1500)
    assert limits.most("t") == NO_LIMIT
    assert not limits.take_trial("t", now + 3 * DOUBTED_AFTER)


def test_a_batch_as_large_as_a_refused_one_would_be_refused() -> None:
    limits = BatchLimits()
    assert not limits.refuses("t", 1000)
    limits.refused("t", 1000, 1.0)
    assert limits.refuses("t", 1000)
    assert not limits.refuses("t", 999)


@given(limit=st.integers(200, 300_000), wanted=st.integers(200, 300_000))
def test_few_batches_are_refused_whatever_the_topic_takes(limit: int, wanted: int) -> None:
    """As many as it takes to halve the size; and what is found is more than half of what the topic takes."""
    limits = BatchLimits()
    refusals = 0
    for _ in range(100):
        size = min(wanted, limits.most("t"))
        if size > limit:
            refusals += 1
            limits.refused("t", size, 1.0)
        else:
            limits.taken("t", size)
    assert refusals <= max(wanted // limit, 1).bit_length()
    assert min(wanted, limits.most("t")) >= min(wanted, limit) // 2
