from __future__ import annotations

import pytest

from aioproducer.producer.windows.line_window import LineWindow, LineWindows


def window(most: int = 5) -> LineWindow:
    return LineWindow(most, 16_384)


def busy(window: LineWindow, took: float, *, batches: int = 200, size: int = 200 * 300, requests: int = 100) -> None:
    for _ in range(requests):  # they go in a row, so that none is alone
        window.sent(batches, size, 0.0)
        window.answered(took, alone=False)


def test_every_place_may_be_used_until_there_is_an_answer() -> None:
    one = window()
    one.sent(200, 1000, 7.0)
    assert one.places == 5
    assert one.opens_at(4) == 0.0


def test_a_distant_broker_may_have_as_many_requests_as_are_allowed() -> None:
    one = window()
    one.answered(0.05, alone=True)
    busy(one, 0.052)
    assert one.places == 5


@pytest.mark.parametrize(("took", "places"), [(0.001, 5), (0.0013, 4), (0.003, 2), (0.004, 1), (1.0, 1)])
def test_the_more_an_answer_is_work_the_fewer_requests_are_under_way(took: float, places: int) -> None:
    one = window()
    one.answered(0.001, alone=True)
    busy(one, took)
    assert one.places == places


def test_full_batches_may_use_every_place() -> None:
    one = window()
    one.answered(0.001, alone=True)
    busy(one, 0.01, batches=6, size=6 * 16_384)
    assert one.places == 5
    busy(one, 0.01, batches=6, size=6 * 10_000)
    assert one.places == 1


def test_work_is_no_distance_however_long_it_lasts() -> None:
    one = window()
    one.answered(0.001, alone=True)
    busy(one, 0.01, requests=10_000)
    assert one.distance == 0.001


def test_a_broker_that_has_moved_away_is_noticed_by_requests_that_go_alone() -> None:
    one = window()
    one.answered(0.001, alone=True)
    for _ in range(40):
        one.sent(1, 100, 0.0)
        one.answered(0.05, alone=True)
    assert one.distance == pytest.approx(0.05, rel=0.01)
    assert one.places == 5


def test_one_that_has_come_nearer_is_noticed_at_once() -> None:
    one = window()
    one.answered(0.05, alone=True)
    busy(one, 0.01, requests=1)
    assert one.distance == 0.01


def test_the_first_answer_of_a_connection_is_the_distance() -> None:
    one = window()
    one.connected(0.001)
    one.connected(0.5)
    busy(one, 0.01)
    assert (one.distance, one.places) == (0.001, 1)
    one.connection_lost()
    one.connected(0.009)
    busy(one, 0.01, requests=1)
    assert (one.distance, one.places) == (0.009, 4)


def test_an_overdue_answer_holds_up_nothing() -> None:
    one = window()
    one.answered(0.001, alone=True)
    busy(one, 0.01)
    one.sent(200, 1000, 7.0)
    assert one.opens_at(0) == 0.0
    assert one.opens_at(1) == pytest.approx(7.02, abs=0.001)


def test_an_answer_in_no_time_limits_nothing() -> None:
    one = window()
    one.sent(1, 100, 0.0)
    one.answered(0.0, alone=True)
    assert one.places == 5


def test_each_node_has_its_own() -> None:
    windows = LineWindows(5, 16_384)
    busy(windows.of(1), 0.01)
    assert windows.of(1) is windows.of(1)
    assert windows.of(2).places == 5
