from __future__ import annotations

import asyncio

import pytest

from aioproducer.errors import DeliveryError, Outcome, TimeoutException
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import ProduceResult
from aioproducer.testing.simulation.checks.ledger import Entry, Ledger, number_of
from aioproducer.testing.simulation.trace import Trace
from tests.producer.simulations.standing_loop import new_result


@pytest.fixture
async def ledger() -> Ledger:
    return Ledger(asyncio.get_running_loop().time, Trace(keep=True))


def accepted(ledger: Ledger, *, parked: bool = False, watched: bool = True) -> tuple[Entry, ProduceResult]:
    entry = ledger.open(0, "t", {"value": b"v"})
    result = new_result(asyncio.get_running_loop(), "t", 2)
    ledger.accepted(entry, Delivery(result, 0), parked=parked, watched=watched)
    return entry, result


def test_a_record_carries_its_number() -> None:
    ledger = Ledger(lambda: 0.0, Trace())
    first = ledger.open(0, "t", {"value": b"v", "headers": (("null", None),)})
    second = ledger.open(1, "t", {"key": b"k", "partition": 3})
    assert [entry.number for entry in ledger.entries] == [0, 1]
    headers = tuple(first.record.headers or ())
    assert headers == (("number", b"0"), ("null", None))
    assert number_of(second.record.headers) == 1
    assert repr(first) == "record 0 for t (pending)"
    assert repr(second) == "record 1 for t-3 (pending)"


async def test_an_end_is_counted_and_reported(ledger: Ledger) -> None:
    reported: list[Entry] = []
    ledger.on_end = reported.append
    entry, result = accepted(ledger)
    assert (entry.settled(), ledger.pending(0), entry.metadata()) == (False, [entry], None)
    assert entry.accepted_at is not None
    error = DeliveryError.of(TimeoutException("late"), Outcome.UNKNOWN, ("t", 2))
    result.fail(error)
    await asyncio.sleep(0)
    assert (entry.ends, entry.settled(), ledger.pending(0), reported) == (1, True, [], [entry])
    assert isinstance(entry.failure(), TimeoutException)
    assert entry.outcome() == "TimeoutException unknown"
    assert ledger.deliveries(0) == [entry.delivery]
    assert ledger.deliveries(1) == []


async def test_an_unwatched_delivery_has_no_callback(ledger: Ledger) -> None:
    entry, result = accepted(ledger, watched=False, parked=True)
    result.fail(DeliveryError.of(TimeoutException("late"), Outcome.NOT_SENT, ("t", 2)))
    await asyncio.sleep(0)
    assert (entry.ends, entry.accepted_at, entry.settled()) == (0, None, True)


def test_a_record_that_was_never_accepted_is_settled_with_its_outcome() -> None:
    ledger = Ledger(lambda: 0.0, Trace())
    refused, cancelled = (ledger.open(0, "t", {}) for _ in range(2))
    refused.error = TimeoutException("no metadata")
    cancelled.cancelled = True
    assert (refused.settled(), refused.outcome()) == (True, "TimeoutException not accepted")
    assert cancelled.outcome() == "cancelled"
