from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from aioproducer.net.connection.connection import LISTENS
from aioproducer.producer.sender.expiry import PATIENCE, STANDSTILL, Expiry
from tests.support.compiled import interpreted_only

pytestmark = interpreted_only


class Batch:
    def __init__(self, due: float, node: int = 0, *, in_flight: bool = True) -> None:
        self.due = due
        self.sent_to = node
        self.in_flight = in_flight


class Connection:
    def __init__(self) -> None:
        self.waits = False
        self.answered_at = -math.inf

    def answers_wait(self) -> bool:
        return self.waits


class Here:
    """An expiry among stand-ins: a client with two nodes, and a completer that fails what it may."""

    def __init__(self, *batches: Batch) -> None:
        self.batches = list(batches)
        self.failed: list[Batch] = []
        self.most = 100
        """So many batches fail in a turn."""
        self.connections = [Connection(), Connection()]
        self.links: Any = dict.fromkeys((0, 1), self)
        self.links = {node: _Link(connection) for node, connection in enumerate(self.connections)}
        here: Any = self
        waits: Any = type("Waits", (), {"too_long": None})
        self.expiry = Expiry(here, here, here, here, here, waits)

    def requests_in_flight(self) -> int:
        return sum(batch.in_flight for batch in self.batches)

    def somebody_waits(self) -> bool:
        return False

    def next_expiry(self) -> float | None:
        return min((batch.due for batch in self.batches), default=None)

    def expire(self, due: float, now: float, is_heard: Callable[[Batch, float, float], bool], why: object) -> bool:
        late = [batch for batch in self.batches if batch.due <= due and not is_heard(batch, batch.due, now)]
        for batch in late[: self.most]:
            self.batches.remove(batch)
            self.failed.append(batch)
        return len(late) > self.most


class _Link:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection


def test_what_is_late_fails_at_the_second_look_while_requests_are_in_flight() -> None:
    under_way, queued = Batch(10), Batch(10, in_flight=False)
    here = Here(under_way, queued)
    assert here.expiry.next() == 10
    here.expiry.expire(9.999)
    here.expiry.expire(10)
    assert here.failed == []
    assert here.expiry.next() == 10 + LISTENS
    here.expiry.expire(10 + LISTENS / 2)
    assert here.failed == []
    here.expiry.expire(10 + LISTENS)
    assert here.failed == [under_way, queued]
    assert here.expiry.next() is None


def test_what_is_late_fails_at_once_if_nothing_is_in_flight() -> None:
    here = Here(Batch(10, in_flight=False))
    here.expiry.expire(10)
    assert len(here.failed) == 1


def test_one_turn_may_not_be_enough() -> None:
    here = Here(*(Batch(10) for _ in range(5)))
    here.most = 2
    here.expiry.expire(10)
    now = 10 + LISTENS
    for failed in (2, 4, 5):
        here.expiry.expire(now)
        assert len(here.failed) == failed
        now += LISTENS / 100
        assert here.expiry.next() is None if failed == 5 else here.expiry.next() <= now  # type: ignore[operator]


@pytest.mark.parametrize("how", ["it has just answered", "its answers wait"])
def test_a_broker_that_answers_is_waited_for_and_no_other(how: str) -> None:
    answered, silent = Batch(10, node=0), Batch(10, node=1)
    here = Here(answered, silent)
    here.expiry.expire(10)
    here.connections[0].waits = how == "its answers wait"
    now = 10 + LISTENS
    while answered not in here.failed:
        if how == "it has just answered":
            here.connections[0].answered_at = now - LISTENS / 2
        here.expiry.expire(now)
        assert silent in here.failed
        now += LISTENS
        assert here.expiry.next() is None or here.expiry.next() == pytest.approx(now)
    assert now == pytest.approx(10 + PATIENCE, abs=3 * LISTENS)


def test_after_a_standstill_it_is_waited_for_as_long() -> None:
    late = Batch(10)
    here = Here(late)
    here.connections[0].waits = True
    now = 15.0  # planned for 10
    while late not in here.failed:
        here.expiry.expire(now)
        now += LISTENS
    assert now == pytest.approx(15 + PATIENCE, abs=3 * LISTENS)


def test_a_standstill_after_that_is_one_more() -> None:
    late = Batch(10)
    here = Here(late)
    here.connections[0].waits = True
    here.expiry.expire(10)
    here.expiry.expire(10 + 2 * STANDSTILL)
    here.expiry.expire(10 + PATIENCE + STANDSTILL)
    assert here.failed == []


def test_what_comes_late_meanwhile_waits_for_no_other() -> None:
    """A look is taken each LISTENS seconds while anything is late."""
    answered, later = Batch(10, node=0), Batch(10.5, node=1)
    here = Here(answered, later)
    here.connections[0].waits = True
    now = 10.0
    while later not in here.failed:
        here.expiry.expire(now)
        now += LISTENS
    assert 10.5 + LISTENS <= now <= 10.5 + 4 * LISTENS
    assert answered not in here.failed


def test_a_lost_connection_is_not_waited_for() -> None:
    here = Here(Batch(10, node=7))
    here.expiry.expire(10)
    here.expiry.expire(10 + LISTENS)
    assert len(here.failed) == 1
