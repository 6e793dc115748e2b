"""The class; interpreted, one of Python's own coroutines takes its place."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from typing import Any

import pytest

from aioproducer.producer.admission.enqueued import Enqueued, enqueued
from aioproducer.producer.delivery.delivery import Delivery
from tests.producer.simulations.standing_loop import Loop, new_result


def delivery() -> Delivery:
    return Delivery(new_result(Loop(), "t", 0), 0)


@pytest.mark.parametrize("make", [Enqueued, enqueued])
async def test_an_enqueued_delivery_is_a_finished_coroutine(make: Any) -> None:
    given = delivery()
    coroutine = make(given)
    assert asyncio.iscoroutine(coroutine)
    assert await coroutine is given
    assert await asyncio.create_task(make(given)) is given
    assert list(await asyncio.gather(make(given), make(given))) == [given, given]
    cancelled = asyncio.create_task(make(given))
    cancelled.cancel()
    assert (await asyncio.gather(cancelled, return_exceptions=True))[0].__class__ is asyncio.CancelledError
    make(given).close()
    thrown = make(given)
    with pytest.raises(ZeroDivisionError):
        thrown.throw(ZeroDivisionError())


@pytest.mark.parametrize("make", [Enqueued, enqueued])
def test_an_unawaited_enqueue_warns(make: Any) -> None:
    with pytest.warns(RuntimeWarning, match="^coroutine 'KafkaProducer.enqueue' was never awaited$") as caught:
        make(delivery())
    assert len(caught) == 1


def test_the_warning_names_the_line_that_has_forgotten_it() -> None:
    with pytest.warns(RuntimeWarning) as caught:
        enqueued(delivery())  # type: ignore[unused-coroutine]
    assert [warning.filename for warning in caught] == [__file__]


def test_an_enqueued_delivery_leaves_no_reference_behind() -> None:
    given = delivery()
    with warnings.catch_warnings(action="ignore"):
        for _ in range(10):
            Enqueued(given)  # type: ignore[unused-awaitable]
    assert gc.get_referrers(given) == []


def test_an_unawaited_enqueue_is_reported_where_warnings_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: reported.append(unraisable.exc_value))
    for _ in range(100):
        enqueued(delivery())  # type: ignore[unused-coroutine]
    assert len(reported) == 100
    assert {type(error) for error in reported} == {RuntimeWarning}
