from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.batches.producer_batch import LEAST_WHOLE, NO_LIMIT
from aioproducer.producer.windows.line_limit import LineLimit


def line() -> LineLimit:
    return LineLimit(timeout=30.0, pause=1.0, largest=1_000_000, beside=4)


def test_nothing_is_limited_until_a_request_times_out() -> None:
    assert line().most == NO_LIMIT


def test_a_time_out_allows_half_the_request_and_another_an_eighth() -> None:
    limit = line()
    limit.timed_out(600_000, 0.0, 30.0)
    assert (limit.most, limit.large_at, limit.slow) == (300_000, 31.0, False)
    limit.timed_out(600_000, 30.0, 60.0)
    assert (limit.most, limit.large_at, limit.slow) == (75_000, 61.0, True)
    limit.timed_out(75_000, 60.0, 90.0)
    assert limit.most == LEAST_WHOLE, "requests take a fixed time, too"
    limit.timed_out(LEAST_WHOLE, 90.0, 120.0)
    assert limit.most == LEAST_WHOLE // 2


def test_a_line_is_slow_until_requests_may_have_any_size() -> None:
    limit = line()
    for now in (30.0, 60.0):
        limit.timed_out(600_000, now - 30.0, now)
    limit.answered(10_000, 10_000, 1, 10.0, 70.0)
    assert limit.slow
    limit.timed_out(80_000, 70.0, 100.0)
    assert limit.slow
    limit.answered(10_000, 10_000, 1, 0.01, 101.0)
    assert (limit.slow, limit.most) == (False, NO_LIMIT)


@pytest.mark.parametrize(("size", "slow"), [(1000, True), (600_000, False)])
def test_time_outs_make_a_line_slow_unless_as_much_is_answered_between_them(size: int, slow: bool) -> None:
    limit = line()
    for now in (30.0, 60.0):
        limit.timed_out(600_000, now - 30.0, now)
        assert limit.slow == (slow and now > 30.0)
        limit.answered(size, size, 1, 20.0, now)


def test_a_broker_that_was_only_away_has_no_limit_after_a_quick_answer() -> None:
    limit = line()
    limit.timed_out(500, 0.0, 30.0)
    assert limit.most == 250
    limit.answered(16_000, 16_000, 1, 0.005, 0.0)
    assert limit.most == NO_LIMIT


def test_a_line_is_taken_to_carry_an_eighth_of_what_an_answer_suggests() -> None:
    limit = line()
    limit.timed_out(1000, 0.0, 30.0)
    limit.answered(10_000, 10_000, 1, 1.0, 0.0)
    assert limit.most == 37_500
    limit.answered(500, 500, 1, 1.0, 0.0)
    assert limit.most == 37_500


def test_a_size_that_crossed_the_line_slowly_may_be_sent_again() -> None:
    limit = line()
    limit.timed_out(1000, 0.0, 30.0)
    limit.answered(200_000, 200_000, 1, 20.0, 0.0)
    assert limit.most == 200_000


def test_a_broker_that_answered_as_much_in_time_was_away() -> None:
    limit = line()
    limit.answered(600_000, 600_000, 1, 15.0, 0.0)
    grown = limit.grown
    for size in (600_000, 500_000, 700_000):
        limit.timed_out(size, 70.0, 100.0)  # all were under way when it went
        assert (limit.most, limit.grown) == (NO_LIMIT, grown)
    limit.timed_out(600_000, 100.0, 130.0)
    assert limit.most == 75_000


def test_the_smaller_the_requests_the_longer_the_broker_may_have_been_away() -> None:
    limit = line()
    limit.answered(640_000, 640_000, 1, 1.0, 0.0)
    for now, size in ((100.0, 640_000), (130.0, 80_000), (160.0, 10_000), (190.0, 1250)):
        limit.timed_out(size, now - 30.0, now)
        assert limit.most == NO_LIMIT
    limit.timed_out(1250, 190.0, 220.0)
    assert limit.most == 625


def test_an_answer_that_comes_late_proves_nothing() -> None:
    limit = line()
    limit.answered(600_000, 600_000, 1, 15.1, 0.0)
    limit.timed_out(600_000, 70.0, 100.0)
    assert limit.most == 300_000


def test_a_larger_request_than_any_that_was_answered_limits_at_once() -> None:
    limit = line()
    limit.answered(10_000, 10_000, 1, 1.0, 0.0)
    limit.timed_out(600_000, 70.0, 100.0)
    assert limit.most == 300_000


@pytest.mark.parametrize(("answer", "most"), [(1.0, 300_000), (10.0, 300_000), (13.0, NO_LIMIT), (29.0, NO_LIMIT)])
def test_a_request_that_waited_for_those_ahead_of_it_says_nothing_of_its_size(answer: float, most: int) -> None:
    limit = line()
    limit.answered(700, 700, 1, answer, answer)
    limit.timed_out(600_000, 0.0, 30.0)
    assert limit.most == most
    limit.timed_out(500_000, 0.0, 30.0)  # nor does one that waited for a request that timed out
    assert limit.most == most


def test_a_long_way_is_no_slow_line() -> None:
    """An answer takes a sixth of request.timeout.ms, whatever the size."""
    limit = LineLimit(timeout=2.0, pause=1.0, largest=1_000_000, beside=4)
    limit.timed_out(500, 0.0, 2.0)
    assert limit.most == 250
    answers = 0
    while limit.most < NO_LIMIT:
        limit.answered(limit.most, limit.most, 1, 0.35, 0.0)
        answers += 1
    assert answers == 12


def test_a_size_is_raised_only_as_far_as_half_the_time_allows() -> None:
    limit = line()
    limit.timed_out(1000, 0.0, 30.0)
    limit.answered(500, 500, 1, 12.0, 0.0)
    assert limit.most == 625
    limit.answered(625, 625, 1, 15.0, 0.0)  # in proportion to the size
    assert limit.most == 625
    limit.answered(625, 625, 1, 14.0, 0.0)  # 12 s were for what a request takes however small it is, at most
    assert limit.most == 625 + 437
    limit.answered(1062, 1062, 1, 21.0, 0.0)
    assert limit.most == 1062


@pytest.mark.parametrize(("size", "took"), [(500, 12.0), (400, 12.0), (1000, 20.0)])
def test_without_a_smaller_request_all_of_the_time_is_for_the_size(size: int, took: float) -> None:
    limit = line()
    limit.timed_out(1000, 0.0, 30.0)
    limit.answered(size, size, 1, took, 0.0)
    assert limit.most == max(500, int(size * max(1.0, 15.0 / took)))


def test_a_broker_that_takes_long_for_any_request_is_no_slow_line() -> None:
    limit = LineLimit(timeout=2.0, pause=1.0, largest=1_000_000, beside=4)
    limit.timed_out(1000, 0.0, 2.0)
    limit.answered(60, 60, 1, 1.7, 0.0)
    assert limit.most == 500
    answers = 0
    while limit.most < NO_LIMIT:
        limit.answered(limit.most, limit.most, 1, 1.7, 0.0)
        answers += 1
    assert answers == 11


def test_a_large_batch_is_due_when_it_has_let_others_go_first_for_a_time_out() -> None:
    limit = line()
    limit.timed_out(1000, 0.0, 30.0)
    assert not limit.large_is_due(1000.0)
    limit.deferred(32.0)
    limit.deferred(40.0)
    assert not limit.large_is_due(61.9)
    assert limit.large_is_due(62.0)
    limit.timed_out(100, 31.5, 61.5)
    assert not limit.large_is_due(62.0)
    assert limit.large_is_due(62.5)
    limit.large_sent()
    assert not limit.large_is_due(1000.0)


def test_no_batch_grows_before_the_line_has_carried_anything() -> None:
    limit = line()
    assert limit.grown == 0
    limit.answered(16_000, 16_000, 1, 0.005, 0.0)
    assert limit.grown > 1_000_000


def test_batches_grow_to_an_eighth_of_what_an_answer_suggests() -> None:
    limit = line()
    limit.answered(16_000, 48_000, 1, 2.0, 0.0)
    assert limit.grown == 90_000
    limit.answered(90_000, 90_000, 1, 11.25, 0.0)
    assert limit.grown == 30_000, "four more as large may be under way"
    limit.answered(90_000, 90_000, 1, 20.0, 0.0)  # others share the line now
    assert limit.grown == 16_875


def test_batches_grow_twofold_while_answers_are_early() -> None:
    """What an answer takes may be for the broker, whatever the size."""
    limit = line()
    limit.answered(100, 100, 1, 12.0, 0.0)
    assert limit.grown == 31
    for size in (200, 400, 800, 1600):
        limit.answered(size, size, 1, 12.0, 0.0)
        assert limit.grown == 2 * size
    limit.answered(3200, 3200, 1, 13.55, 0.0)
    each = 1.55 / 3100  # what is more took 1.55 s
    assert limit.grown == 3200 + int((21 - 13.55 - 4 * 3200 * each) / 5 / each)
    limit.answered(4750, 4750, 1, 21.1, 0.0)
    assert limit.grown == 844


@pytest.mark.parametrize(("beside", "grown"), [(0, 180_000), (1, 112_500), (4, 56_250)])
def test_batches_grow_less_the_more_of_them_may_be_under_way(beside: int, grown: int) -> None:
    limit = LineLimit(timeout=30.0, pause=1.0, largest=1_000_000, beside=beside)
    limit.answered(90_000, 90_000, 1, 6.0, 0.0)
    assert limit.grown == grown


def test_what_the_way_takes_says_nothing_of_the_line() -> None:
    """A round trip of 12 s, known from the first answer of the connection."""
    limit = line()
    limit.connected(12.0)
    limit.timed_out(1000, 0.0, 30.0)
    limit.answered(400, 400, 1, 12.5, 0.0)
    assert limit.most == 2 * 400
    limit.connected(100.0)
    limit.answered(500, 500, 1, 5.0, 0.0)  # nor is the first answer the way if another takes less
    limit.answered(1_000_000, 1_000_000, 1, 30.0, 0.0)
    assert limit.grown == 1_000_000 * 25 // 8 // 25


def test_a_small_request_is_small_and_not_slow() -> None:
    limit = line()
    limit.answered(100_000, 100_000, 1, 0.5, 0.0)
    assert limit.grown == 750_000
    limit.answered(200, 200, 1, 0.15, 0.0)
    assert limit.grown == 750_000
    limit.answered(200, 200, 1, 20.0, 0.0)  # even that was slow
    assert limit.grown == 37


def test_a_time_out_limits_growth() -> None:
    limit = line()
    limit.answered(100_000, 100_000, 1, 0.5, 0.0)
    limit.timed_out(120_000, 0.0, 30.0)
    assert limit.grown == 12_000, "five of them would be answered early"


def test_an_answer_tells_of_all_bytes_that_were_on_their_way() -> None:
    """Five requests share the line, and each takes as long as all of them."""
    limit = line()
    ahead = [limit.sent(16_000) for _ in range(5)]
    assert ahead == [16_000, 32_000, 48_000, 64_000, 80_000]
    for number, one in enumerate(ahead):
        limit.answered(16_000, one, 1, 0.5 * (number + 1), 0.0)
        assert limit.grown == 120_000
    assert limit.sent(100) == 100


def test_answers_that_differ_by_chance_say_nothing_of_the_size() -> None:
    """Nearly as many bytes took nearly as long, so what is more seems to take no time."""
    limit = line()
    limit.answered(186_000, 744_000, 1, 14.8, 0.0)
    limit.answered(186_001, 744_001, 1, 14.8, 0.0)
    assert limit.grown == 744_001 * 30 / 8 // 14.8


def test_the_way_does_not_always_take_the_same_time() -> None:
    limit = line()
    limit.connected(0.15)
    limit.answered(5000, 5000, 1, 0.14, 0.0)  # 0.1 s of it for 5,000 bytes, at 50 kB/s
    assert limit.grown == 5000 * (30 - 0.14) / 8 // 0.14


def test_an_answer_behind_many_bytes_says_nothing_of_the_fixed_time() -> None:
    """A small request that waited for 736,000 B took longer than a larger one with less ahead of it."""
    limit = line()
    limit.answered(5000, 741_000, 1, 14.8, 0.0)
    limit.answered(150_000, 500_000, 1, 10.0, 0.0)
    assert limit.grown == 500_000 * 30 / 8 / 10


class Line:
    """Five requests at a time, one after the other; ``seconds(size)`` is what one takes, besides the way."""

    def __init__(self, random: Random, way: float, seconds: Callable[[int], float]) -> None:
        self.limit = line()
        self._random = random
        self._way = way
        self._seconds = seconds
        self._now = self._free_at = 0.0
        self._unanswered: deque[tuple[float, float, int, int, int]] = deque()
        self.limit.connected(self._varied())

    def send(self, size: int) -> None:
        """Once there is a place. The way takes from half to one and a half of its time."""
        if len(self._unanswered) == 5:
            answered_at, sent_at, answered, ahead, requests = self._unanswered.popleft()
            self._now = max(self._now, answered_at)
            assert self._now - sent_at <= 30.0
            self.limit.answered(answered, ahead, requests, self._now - sent_at, self._now)
        self._free_at = max(self._free_at, self._now) + self._seconds(size)
        ahead, requests = self.limit.sent(size), len(self._unanswered) + 1
        self._unanswered.append((self._free_at + self._varied(), self._now, size, ahead, requests))

    def _varied(self) -> float:
        return self._way * self._random.uniform(0.5, 1.5)


@given(st.randoms(use_true_random=True))
def test_five_requests_at_a_time_are_answered_in_time_however_slow_the_line(random: Random) -> None:
    """Most are as large as the limit allows, and some are small."""
    bandwidth, way, few = 10 ** random.uniform(4, 6), 10 ** random.uniform(-3, -0.7), random.random() ** 2
    here = Line(random, way, lambda size: size / bandwidth)
    for _ in range(400):
        part = random.uniform(0.0, 0.1) if random.random() < few else random.uniform(0.98, 1.0)
        here.send(100 + int(part * max(16_284, min(int(here.limit.grown), 999_900))))


@given(st.floats(0.1, 2.8), st.floats(1e6, 1e8), st.randoms(use_true_random=True))
def test_batches_grow_where_each_of_five_requests_takes_long(each: float, bandwidth: float, random: Random) -> None:
    """The more requests are ahead of one, the longer it takes, whatever their size."""
    here = Line(random, 0.01, lambda size: each + size / bandwidth)
    for _ in range(400):
        here.send(int(random.uniform(0.5, 1.0) * max(16_384, min(int(here.limit.grown), 999_900))))
    assert here.limit.grown > 262_144
