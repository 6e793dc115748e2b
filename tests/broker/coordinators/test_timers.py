"""Timers are called back once, in order, and so that the event loop is never held by many of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.coordinators.timers import Timers
from aioproducer.broker.coordinators.transaction_coordinator import NOBODY, TransactionCoordinator
from aioproducer.broker.requests import slices
from aioproducer.broker.requests.slices import SLICE, Slices
from tests.support.manual_clock import ManualClock


class Called:
    """Timers whose callbacks take some time each, and the callbacks of every turn of the loop."""

    def __init__(self, seconds: float) -> None:
        self.clock = ManualClock()
        self.timers: Timers[int] = Timers(Slices(self.clock))
        self.turns: list[list[int]] = []
        self._seconds = seconds

    def note(self, key: int) -> Callable[[], object]:
        def called() -> None:
            self.turns[-1].append(key)
            self.clock.advance(self._seconds)

        return called

    async def all(self) -> list[list[int]]:
        """What was called in each turn, until all are."""
        while self.timers:
            self.turns.append([])
            await asyncio.sleep(0)
        return [turn for turn in self.turns if turn]

    def start(self, *keys: int) -> None:
        """They are over in the next turn."""
        self.turns.append([])
        for key in keys:
            self.timers.start(key, 0, self.note(key))
        time.sleep(0.001)


async def test_those_that_are_over_at_the_same_time_take_turns() -> None:
    called = Called(SLICE)
    called.start(*range(5))
    assert await called.all() == [[0], [1], [2], [3], [4]]


async def test_short_ones_share_a_turn() -> None:
    called = Called(SLICE / 2)
    called.start(*range(5))
    assert await called.all() == [[0, 1], [2, 3], [4]]


async def test_a_timer_may_be_stopped_or_started_again_until_it_calls_back() -> None:
    called = Called(SLICE)
    called.start(0, 1, 2, 3)
    while not any(called.turns):  # noqa: ASYNC110 - there is no event to await
        await asyncio.sleep(0)
    called.timers.stop(1)
    called.timers.start(2, 0, called.note(7))
    called.timers.stop(8)
    assert len(called.timers) == 2
    assert sorted(key for turn in await called.all() for key in turn) == [0, 3, 7]


async def test_a_callback_that_fails_does_not_stop_the_others() -> None:
    loop, errors = asyncio.get_running_loop(), list[str]()
    loop.set_exception_handler(lambda loop, context: errors.append(str(context["exception"])))
    called = Called(SLICE)

    def fail() -> None:
        raise ValueError("bad")

    called.timers.start(0, 0, fail)
    called.start(1)
    assert await called.all() == [[1]]
    assert errors == ["bad"]


async def test_none_is_called_after_the_close() -> None:
    called = Called(SLICE)
    called.start(0, 1)
    called.timers.close()
    assert (len(called.timers), await called.all()) == (0, [])


async def test_transactions_that_time_out_at_the_same_time_are_aborted_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client chooses the time-outs of thousands of transactions so that all of them are over in the same turn."""
    monkeypatch.setattr(slices, "SLICE", -1)
    turn, turns, write = 0, list[int](), TransactionCoordinator._write_markers

    def noted(*args: Any, **options: Any) -> None:
        turns.append(turn)
        write(*args, **options)

    monkeypatch.setattr(TransactionCoordinator, "_write_markers", noted)
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("t", partitions=10)
        transactions = cluster._transactions
        for number in range(20):
            identity = transactions.init_producer_id(f"x{number}", 1, NOBODY)[0]
            transactions.add_partitions(f"x{number}", identity, [("t", index) for index in range(10)])
        time.sleep(0.005)  # noqa: ASYNC251 - until all are over
        while transactions._timers:
            turn += 1
            await asyncio.sleep(0)
    assert len(turns) == len(set(turns)) == 20
