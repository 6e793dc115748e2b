from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.windows.send_buffer import TURN, WIDEST, SendBuffer

KAFKAS = 131072
MOST = WIDEST * KAFKAS


def buffer() -> SendBuffer:
    return SendBuffer(KAFKAS, grows=True)


def sizes(one: SendBuffer, rate: float, way: float, answers: int = 10, size: int = KAFKAS) -> list[int]:
    """The sizes after answers to requests of a megabyte, five at once, over a line of ``rate`` bytes a second."""
    seen = []
    for _ in range(answers):
        ahead = 5_000_000
        size = int(one.needed(size, ahead, way + ahead / rate, way))
        seen.append(size)
    return seen


@pytest.mark.parametrize(
    ("rate", "way", "size"),
    [
        (1e9, 0.0001, MOST),
        (200e6, 0.0002, MOST),
        (120e6, 0.0005, MOST),
        (40e6, 0.0005, 2 * KAFKAS),
        (12e6, 0.001, KAFKAS),
        (1e6, 0.001, KAFKAS),
        (20e3, 0.001, KAFKAS),
        (12e6, 0.05, MOST),
        (500e3, 0.15, 2 * KAFKAS),
        (100e3, 0.15, KAFKAS),
    ],
)
def test_the_buffer_holds_what_the_line_carries_until_the_loop_returns_and_the_other_side_acknowledges(
    rate: float, way: float, size: int
) -> None:
    seen = sizes(buffer(), rate, way)
    assert seen[-1] == size
    assert seen == sorted(seen)


def test_it_doubles_with_each_answer() -> None:
    assert sizes(buffer(), 1e9, 0.0, answers=3) == [2 * KAFKAS, MOST, MOST]


def test_small_requests_show_nothing() -> None:
    assert buffer().needed(KAFKAS, KAFKAS - 1, 0.000_001, 0.0) == KAFKAS
    assert buffer().needed(MOST, MOST - 1, 10.0, 0.0) == MOST


def test_a_line_that_becomes_slow_gets_less() -> None:
    assert sizes(buffer(), 1e6, 0.0, answers=3, size=MOST) == [2 * KAFKAS, KAFKAS, KAFKAS]


@pytest.mark.parametrize("size", [KAFKAS, 0, -1, 4096])
def test_a_size_that_is_given_stays(size: int) -> None:
    assert SendBuffer(size, grows=False).needed(size, 10**6, 0.001, 0.0) == size


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0.0, 1e6))), st.floats(0.0, 100.0))
def test_the_size_stays_between_the_first_and_the_widest(answers: list[tuple[int, float]], greeting: float) -> None:
    one, size = buffer(), KAFKAS
    for ahead, took in answers:
        before, size = size, int(one.needed(size, ahead, took, min(greeting, took)))
        assert KAFKAS <= size <= MOST
        assert size in (before, 2 * before, before // 2)


@given(st.floats(1e3, 1e9), st.floats(0.0, 1.0))
def test_what_the_buffer_holds_crosses_a_line_within_a_few_of_its_turns(rate: float, way: float) -> None:
    size = sizes(buffer(), rate, way)[-1]
    if size > KAFKAS:
        assert size / rate <= 4 * (way + TURN) + 1e-9
