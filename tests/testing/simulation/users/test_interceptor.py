from __future__ import annotations

from random import Random
from typing import Any

import pytest

from aioproducer.errors import TimeoutException
from aioproducer.testing.simulation.checks.ledger import Entry
from aioproducer.testing.simulation.users.interceptor import CountingInterceptor
from aioproducer.testing.simulation.users.workload import CallbackRaised
from aioproducer.types import TopicPartition
from tests.testing.simulation.histories import History, failure


class Never(Random):
    """A random source whose draws make every fault improbable."""

    def random(self) -> float:
        return 1.0


class Case:
    def __init__(self) -> None:
        self.history = History()
        self.interceptor = CountingInterceptor(0, Never())

    def sent(self) -> Entry:
        entry = self.history.sent()
        self.interceptor.on_send(entry.record)
        return entry

    def acknowledged(self, entry: Entry, offset: int) -> None:
        metadata = self.history.metadata(entry, offset)
        self.interceptor.on_acknowledgement(metadata, None, entry.record.headers or ())

    def found(self) -> list[str]:
        self.interceptor.close()
        self.interceptor.check(self.history.ledger, self.history.violations)
        return [violation.partition(": ")[0] for violation in self.history.violations.found]


def test_ends_as_they_should_be() -> None:
    case = Case()
    delivered, late, refused = case.sent(), case.sent(), case.sent()
    case.history.ends(delivered, case.history.metadata(delivered, 7))
    case.acknowledged(delivered, 7)
    error = failure(TimeoutException("late"))
    case.history.ends(late, error)
    case.interceptor.on_acknowledgement(case.history.metadata(late, -1), error, late.record.headers or ())
    refused.delivery, refused.error = None, TimeoutException("no metadata")
    case.interceptor.on_send_error(refused.record, TopicPartition("t", -1), TimeoutException("no metadata"))
    case.history.sent()  # by an interceptor, or refused before it was intercepted
    assert case.found() == []


@pytest.mark.parametrize("ends", [0, 2])
def test_a_record_that_ends_twice_or_not(ends: int) -> None:
    case = Case()
    entry = case.sent()
    case.history.ends(entry, case.history.metadata(entry, 7))
    for _ in range(ends):
        case.acknowledged(entry, 7)
    assert case.found() == ["every intercepted record ends once"]


def test_an_end_that_is_not_true() -> None:
    case = Case()
    one, other = case.sent(), case.sent()
    case.history.ends(one, case.history.metadata(one, 7))
    case.acknowledged(one, 8)
    case.history.ends(other, failure(TimeoutException("late")))
    case.interceptor.on_send_error(other.record, TopicPartition("t", -1), TimeoutException("something else"))
    assert case.found() == ["interceptors see how records end"] * 2


def test_an_interceptor_that_is_not_closed_once() -> None:
    case = Case()
    case.interceptor.close()
    assert case.found() == ["interceptors are closed once"]


def test_the_interceptor_raises_now_and_then() -> None:
    interceptor = CountingInterceptor(0, Random(0))
    record: Any = History().sent().record
    raised = 0
    for _ in range(1000):
        try:
            assert interceptor.on_send(record) == record
        except CallbackRaised:
            raised += 1
    assert 5 < raised < 50
