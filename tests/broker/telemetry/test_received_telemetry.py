"""What clients have pushed is kept within bounds, and none of them can drive out what others have pushed."""

from __future__ import annotations

from uuid import UUID

import pytest

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


def test_old_pushes_go() -> None:
    received = ReceivedTelemetry()
    received.add(push(number=1), 0.0)
    received.add(push(number=2), 10.0)
    assert [one.time_ms for one in received.all(MAX_AGE + 1)] == [2]
    assert received.all(MAX_AGE + 11) == []
