from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.windows.timely_window import FEW, TimelyWindow


def window(most: int = 5, greeting: float = 0.0) -> TimelyWindow:
    one = TimelyWindow(most, timeout=2.0)
    one.connected(greeting)
    return one


def test_every_place_may_be_used_until_an_answer_takes_long() -> None:
    one = window()
    assert one.places == 5
    one.answered(1.0, 5)
    assert one.places == 5


def test_after_a_time_out_one_request_is_under_way() -> None:
    one = window()
    one.timed_out()
    assert one.places == 1


def test_each_answer_allows_twice_as_many_while_the_last_would_be_answered_in_half_of_the_time() -> None:
    one = window()
    one.timed_out()
    seen = []
    for _ in range(6):
        one.answered(0.3 * one.places, one.places)
        seen.append(one.places)
    assert seen == [2, 3, 3, 3, 3, 3]


@pytest.mark.parametrize(("took", "ahead", "places"), [(1.25, 5, 4), (1.9, 5, 2), (9.0, 5, 1), (9.0, 1, 1)])
def test_an_answer_that_takes_long_allows_fewer_at_once(took: float, ahead: int, places: int) -> None:
    one = window()
    one.answered(took, ahead)
    assert one.places == places


@pytest.mark.parametrize(("took", "ahead", "places"), [(0.3, 1, 5), (0.4, 1, 4), (0.7, 1, 2), (1.2, 1, 1), (1.2, 4, 5)])
def test_one_with_fewer_ahead_of_it_makes_sure_that_all_are_in_time(took: float, ahead: int, places: int) -> None:
    one = window()
    one.answered(took, ahead)
    assert one.places == places


def test_after_a_few_answers_to_single_requests_two_are_tried() -> None:
    one = window()
    one.timed_out()
    for _ in range(FEW - 1):
        one.answered(0.8, 1)
        assert one.places == 1
    one.answered(0.8, 1)
    assert one.places == 2
    one.answered(0.8, 1)  # which had left before
    assert one.places == 2
    one.answered(1.6, 2)
    assert one.places == 1, "the broker takes one after the other"


def test_a_broker_that_answers_several_at_once_gets_several() -> None:
    one = window()
    one.timed_out()
    for _ in range(FEW):
        one.answered(0.6, 1)
    for _ in range(3):
        for ahead in range(1, one.places + 1):
            one.answered(0.6, ahead)
    assert one.places >= 3


def test_two_are_not_tried_where_they_would_not_be_in_time() -> None:
    one = window()
    for _ in range(3 * FEW):
        one.answered(0.95, 1)
    assert one.places == 1


def test_no_second_request_is_tried_where_none_is_allowed() -> None:
    one = window(most=1)
    for _ in range(3 * FEW):
        one.answered(0.8, 1)
    assert one.places == 1


def test_a_slow_first_answer_is_the_way_until_another_takes_less() -> None:
    one = window(greeting=1.9)
    one.answered(0.6, 1)
    one.timed_out()
    one.answered(1.2, 1)
    assert one.places == 1


@pytest.mark.parametrize("way", [0.3, 0.9, 1.9])
def test_a_long_way_takes_no_longer_with_more_requests(way: float) -> None:
    one = window(greeting=way)
    one.timed_out()
    for _ in range(4):
        one.answered(way, one.places)
    assert one.places == 5


def test_an_answer_in_no_time_limits_nothing() -> None:
    one = window()
    one.answered(0.0, 1)
    assert one.places == 5


@given(each=st.floats(0.001, 1.9), way=st.floats(0.0, 0.5), most=st.integers(1, 50), late=st.booleans())
def test_no_request_of_a_steady_broker_times_out_once_one_was_answered(
    each: float, way: float, most: int, late: bool
) -> None:
    one = window(most, way)
    if late:
        one.timed_out()
    one.answered(way + each, 1)
    for _ in range(60):
        assert 1 <= one.places <= most
        took = way + each * one.places
        assert took < 2.0 or one.places == 1
        one.answered(took, one.places)
