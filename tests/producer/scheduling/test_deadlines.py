from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.scheduling.deadlines import DeadlineHeap


class Incomparable:
    """An item that has no order."""


def test_is_empty_at_first() -> None:
    heap: DeadlineHeap[str] = DeadlineHeap()
    assert heap.next() is None
    assert heap.pop_due(1e9, 9) == []
    assert len(heap) == 0


@given(whens=st.lists(st.floats(0, 10), max_size=30), now=st.floats(0, 10))
def test_gives_what_is_due_in_order_and_keeps_the_rest(whens: list[float], now: float) -> None:
    heap: DeadlineHeap[tuple[float, Incomparable]] = DeadlineHeap()
    for when in whens:
        heap.push(when, (when, Incomparable()))
    assert heap.next() == min(whens, default=None)
    assert [when for when, _ in heap.pop_due(now, 10**9)] == sorted(when for when in whens if when <= now)
    later = sorted(when for when in whens if when > now)
    assert len(heap) == len(later)
    assert heap.next() == (later[0] if later else None)
    assert [when for when, _ in heap.pop_due(10, 10**9)] == later


def test_at_the_same_time_first_come_first_served() -> None:
    heap: DeadlineHeap[int] = DeadlineHeap()
    for item in range(50):
        heap.push(1.0, item)
    assert heap.pop_due(1.0, 1000) == list(range(50))


def test_what_is_beyond_the_most_stays_for_later() -> None:
    heap: DeadlineHeap[int] = DeadlineHeap()
    for number in range(5):
        heap.push(float(number), number)
    assert heap.pop_due(3.0, 3) == [0, 1, 2]
    assert heap.next() == 3.0
    assert heap.pop_due(3.0, 3) == [3]
    assert heap.pop_due(3.0, 3) == []
