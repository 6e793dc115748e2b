from __future__ import annotations

import pytest

from aioproducer.producer.windows.line_window import LineWindow


def window(greeting: float = 0.001, most: int = 5) -> LineWindow:
    one = LineWindow(most, 16_384)
    one.connected(greeting)
    return one


def busy(
    one: LineWindow, took: float, *, batches: int = 200, size: int = 300, requests: int = 100, ahead: int = 0
) -> None:
    """Requests in a row, each behind so many others. ``size`` is that of a batch."""
    for _ in range(ahead):
        one.sent(batches, batches * size, 0.0)
    for _ in range(requests):
        work = one.sent(batches, batches * size, 0.0)
        assert work == (1 + ahead) * batches
        one.answered(took, batches, work=work)
    for _ in range(ahead):
        one.failed(batches)


def test_every_place_may_be_used_until_there_is_an_answer() -> None:
    one = window()
    for _ in range(4):
        one.sent(200, 1000, 7.0)
    assert (one.places, one.unanswered, one.opens_at()) == (5, 4, 0.0)


def test_a_distant_broker_may_have_as_many_requests_as_are_allowed() -> None:
    one = window(0.05)
    busy(one, 0.052)
    assert one.places == 5


@pytest.mark.parametrize("ahead", [0, 4])
@pytest.mark.parametrize(("took", "places"), [(0.001, 5), (0.0013, 4), (0.003, 2), (0.004, 1), (0.02, 1)])
def test_the_more_an_answer_is_work_the_fewer_requests_are_under_way(took: float, places: int, ahead: int) -> None:
    one = window()
    busy(one, took, ahead=ahead)
    assert one.places == places


def test_full_batches_may_use_every_place() -> None:
    one = window()
    busy(one, 0.01, size=16_384)
    assert one.places == 5
    busy(one, 0.01, size=10_000)
    assert one.places == 1


def test_work_is_no_distance_however_long_it_lasts() -> None:
    one = window()
    busy(one, 0.01, requests=10_000)
    busy(one, 0.02, requests=10_000, ahead=1)
    assert one.distance == 0.001


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("batches", [1, 25, 50])
def test_a_broker_that_has_moved_away_is_noticed(batches: int, ahead: int) -> None:
    one = window()
    busy(one, 0.05 + batches * 0.00003, batches=batches, requests=40, ahead=ahead)
    assert one.distance >= 0.03
    assert one.places >= 3


def test_an_answer_that_took_long_once_is_forgotten() -> None:
    one = window()
    busy(one, 0.007)
    busy(one, 0.1, requests=1)
    assert one.distance > 0.01
    busy(one, 0.007, requests=200)
    assert one.distance < 0.0012
    assert one.places == 1


def test_one_that_has_come_nearer_is_noticed_at_once() -> None:
    one = window(0.05)
    busy(one, 0.01, requests=1)
    assert one.distance == 0.01


def test_the_first_answer_of_a_connection_is_the_distance() -> None:
    one = window()
    one.connected(0.5)
    busy(one, 0.01)
    assert (one.distance, one.places) == (0.001, 1)
    one.connection_lost()
    assert one.places == 5
    one.connected(0.009)
    busy(one, 0.01, requests=1)
    assert (one.distance, one.places) == (0.009, 4)


def test_without_a_first_answer_the_first_request_is_the_distance() -> None:
    one = LineWindow(5, 16_384)
    busy(one, 0.003, requests=1)
    assert (one.distance, one.places) == (0.003, 5)


def test_an_overdue_answer_holds_up_nothing() -> None:
    one = window()
    busy(one, 0.01)
    assert one.opens_at() == 0.0
    one.sent(200, 1000, 7.0)
    assert one.opens_at() == pytest.approx(7.02, abs=0.001)
    one.failed(200)
    assert (one.unanswered, one.opens_at()) == (0, 0.0)


def test_an_answer_in_no_time_limits_nothing() -> None:
    one = LineWindow(5, 16_384)
    busy(one, 0.0, requests=1)
    assert one.places == 5
