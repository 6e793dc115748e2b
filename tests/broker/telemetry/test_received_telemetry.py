"""What clients have pushed is kept within bounds, and none of them can drive out what others have pushed."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.telemetry import received_telemetry
from aioproducer.broker.telemetry.received_telemetry import MAX_AGE, MAX_PUSHES, ClientPush, ReceivedTelemetry


def push(metrics: bytes = b"m", *, user: str = "alice", number: int = 0) -> ClientPush:
    return ClientPush(0, number, UUID(int=number), "c", "", user, "127.0.0.1", False, "none", metrics)


def test_pushes_are_in_the_order_in_which_they_came() -> None:
    received = ReceivedTelemetry()
    pushes = [push(user=user, number=number) for number, user in enumerate(["a", "b", "a", "c"])]
    for number, one in enumerate(pushes):
        received.add(one, float(number))
    assert received.all(10.0) == pushes


def test_pushes_of_a_user_are_limited_and_the_newest_stay() -> None:
    received = ReceivedTelemetry()
    for number in range(MAX_PUSHES + 5):
        received.add(push(number=number), 0.0)
    assert [one.time_ms for one in received.all(0.0)] == list(range(5, MAX_PUSHES + 5))


def test_bytes_of_a_user_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received_telemetry, "MAX_BYTES", 10_000)
    received = ReceivedTelemetry()
    for number in range(10):
        received.add(push(b"x" * 3000, number=number), 0.0)
    assert [one.time_ms for one in received.all(0.0)] == [8, 9]
    received.add(push(b"x" * 20_000, number=10), 0.0)  # alone it is kept, whatever the limit
    assert [one.time_ms for one in received.all(0.0)] == [10]


def test_who_has_most_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received_telemetry, "MAX_ALL_BYTES", 20_000)
    received = ReceivedTelemetry()
    received.add(push(user="small", number=1), 0.0)
    for number in range(10):
        received.add(push(b"x" * 3000, user="large", number=number), 1.0)
    kept = received.all(1.0)
    assert kept[0].user == "small"
    assert [one.time_ms for one in kept[1:]] == [6, 7, 8, 9]


def test_many_users_cannot_fill_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received_telemetry, "MAX_ALL_BYTES", 20_000)
    received = ReceivedTelemetry()
    for number in range(1000):
        received.add(push(user=str(number), number=number), 0.0)
    assert len(received.all(0.0)) == 20_000 // 1025


def test_texts_of_the_client_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received_telemetry, "MAX_BYTES", 200_000)
    received = ReceivedTelemetry()
    for number in range(10):
        received.add(push(number=number)._replace(client_id="c" * 10_000, software="s" * 10_000), 0.0)
    assert [one.time_ms for one in received.all(0.0)] == [8, 9]


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A holder for each push that is dropped."""
    found: list[object] = []
    drop = ReceivedTelemetry._drop

    def counting(received: ReceivedTelemetry, holder: Any) -> None:
        found.append(holder)
        drop(received, holder)

    monkeypatch.setattr(ReceivedTelemetry, "_drop", counting)
    return found


def test_a_push_makes_room_from_few_others(monkeypatch: pytest.MonkeyPatch, dropped: list[object]) -> None:
    """Each of eight holders has many small pushes, which are older than its large ones."""
    monkeypatch.setattr(received_telemetry, "MAX_ALL_BYTES", 8 * 700_000)
    received = ReceivedTelemetry()
    for number in range(8):
        for _ in range(91):
            received.add(push(user=str(number)), 0.0)
        for _ in range(6):
            received.add(push(bytes(100_000), user=str(number)), 0.0)
    dropped.clear()
    for number in range(20):
        received.add(push(bytes(300_000), user=f"other {number}"), 0.0)
        assert len(dropped) <= 2 * MAX_PUSHES
        assert sum(map(received_telemetry._size, received.all(0.0))) <= 8 * 700_000
        dropped.clear()


def test_old_pushes_go_a_few_at_a_time(dropped: list[object]) -> None:
    received = ReceivedTelemetry()
    for number in range(1000):
        received.add(push(user=str(number)), 0.0)
    received.add(push(number=1), MAX_AGE + 1)
    assert len(dropped) == MAX_PUSHES
    assert [one.time_ms for one in received.all(MAX_AGE + 1)] == [1]


def test_how_many_hold_pushes_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a push looks at: the holders whose size changes, and no others."""
    looked_at: list[int] = []
    magnitude = received_telemetry._magnitude

    def counting(size: int) -> int:
        looked_at.append(size)
        return magnitude(size)

    monkeypatch.setattr(received_telemetry, "_magnitude", counting)
    monkeypatch.setattr(received_telemetry, "MAX_ALL_BYTES", 1_000_000)
    received = ReceivedTelemetry()
    for number in range(2000):
        looked_at.clear()
        received.add(push(user=str(number)), 0.0)
        assert len(looked_at) <= 4
    assert len(received._by_size) == 1


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 9000), st.sampled_from([0, 0, 0, 1200.0, 5000.0])), max_size=60
    )
)
def test_the_sums_are_those_of_what_is_kept(pushes: list[tuple[int, int, float]]) -> None:
    with pytest.MonkeyPatch.context() as limits:
        for name, value in (("MAX_PUSHES", 4), ("MAX_BYTES", 20_000), ("MAX_ALL_BYTES", 30_000)):
            limits.setattr(received_telemetry, name, value)
        received, now = ReceivedTelemetry(), 0.0
        for number, (user, size, later) in enumerate(pushes):
            now += later
            received.add(push(bytes(size), user=str(user), number=number), now)
            kept = received.all(now)
            assert [each.time_ms for each in kept] == sorted(each.time_ms for each in kept)
            assert sum(map(received_telemetry._size, kept)) == received._size <= 30_000
            by_user = Counter(each.user for each in kept)
            assert by_user.keys() == {user for user, _ in received._holders}
            assert max(by_user.values()) <= 4
            of_magnitude = [holder for holders in received._by_size.values() for holder in holders]
            assert {holder.name[0] for holder in of_magnitude} == by_user.keys()
            assert len(of_magnitude) == len(by_user)


@pytest.mark.parametrize("first", [0, 1000, 2**20])
def test_magnitudes_rise_in_steps_of_an_eighth(first: int) -> None:
    sizes = range(first, first + 5000)
    found = [received_telemetry._magnitude(size) for size in sizes]
    assert found == sorted(found)
    for (low, a), (high, b) in itertools.product(zip(sizes[::97], found[::97], strict=True), repeat=2):
        assert a != b or max(low, high) <= min(low, high) * 9 / 8


def test_old_pushes_go() -> None:
    received = ReceivedTelemetry()
    received.add(push(number=1), 0.0)
    received.add(push(number=2), 10.0)
    assert [one.time_ms for one in received.all(MAX_AGE + 1)] == [2]
    assert received.all(MAX_AGE + 11) == []
