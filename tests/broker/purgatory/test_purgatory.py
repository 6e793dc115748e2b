from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.purgatory.delayed_operation import DelayedOperation
from aioproducer.broker.purgatory.purgatories import Purgatories
from aioproducer.broker.purgatory.purgatory import DelayedOperationPurgatory
from aioproducer.broker.requests.fatal_exit_error import FatalExitError
from tests.support.manual_clock import ManualClock
from tests.support.virtual_time import World, virtual


class Operation(DelayedOperation):
    """Can be completed once it is ``ready``; notes how and when it ended."""

    def __init__(self, delay_ms: int = 1000, *, then: Callable[[], object] = lambda: None) -> None:
        super().__init__(delay_ms)
        self.ready = False
        self.ends: list[str] = []
        self.ended_at: float | None = None
        self._then = then

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.ends.append("completed")
        self.ended_at = asyncio.get_running_loop().time()
        self._then()

    def on_expiration(self) -> None:
        self.ends.append("expired")


class LoopClock(ManualClock):
    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def make(purge_interval: int = 1000, **more: Any) -> DelayedOperationPurgatory:
    return DelayedOperationPurgatory("Test", LoopClock(), purge_interval=purge_interval, **more)


@virtual
async def test_an_operation_that_can_be_completed_does_not_wait(world: World) -> None:
    purgatory, operation = make(), Operation()
    operation.ready = True
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert (operation.ends, purgatory.num_delayed, purgatory.watched) == (["completed"], 0, 0)


@virtual
async def test_an_event_of_one_of_its_keys_completes_it_once(world: World) -> None:
    purgatory, operation, other = make(), Operation(), Operation()
    assert not purgatory.try_complete_else_watch(operation, ["a", "b"])
    assert not purgatory.try_complete_else_watch(other, ["b"])
    assert purgatory.check_and_complete("b") == 0
    operation.ready = True
    assert purgatory.check_and_complete("c") == 0
    assert purgatory.check_and_complete("b") == 1
    assert purgatory.check_and_complete("a") == 0
    await asyncio.sleep(2)
    assert operation.ends == ["completed"]
    assert other.ends == ["completed", "expired"]


@pytest.mark.parametrize("delay_ms", [1, 5, 20, 399, 400, 7_777, 600_000])
@virtual
async def test_its_time_is_up(world: World, delay_ms: int) -> None:
    loop = asyncio.get_running_loop()
    purgatory, operation, began = make(), Operation(delay_ms), loop.time()
    purgatory.try_complete_else_watch(operation, ["a"])
    await asyncio.sleep(delay_ms / 1000 + 0.05)
    assert operation.ends == ["completed", "expired"]
    assert operation.ended_at is not None
    # Never early, and late by no more than the rounding to a tick and the timers of the loop, which are late too.
    assert 0 <= operation.ended_at - began - delay_ms / 1000 <= 0.02
    assert purgatory.num_delayed == 0


@virtual
async def test_no_time_at_all(world: World) -> None:
    purgatory, operation = make(), Operation(delay_ms=-1)
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.ends == ["completed", "expired"]
    assert purgatory.watched == 0


@virtual
async def test_an_abandoned_one_does_nothing(world: World) -> None:
    purgatory, operation = make(), Operation()
    purgatory.try_complete_else_watch(operation, ["a"])
    operation.ready = True
    assert operation.abandon()
    assert not operation.abandon()
    assert purgatory.num_delayed == 0
    assert purgatory.check_and_complete("a") == 0
    await asyncio.sleep(2)
    assert operation.ends == []


@virtual
async def test_the_end_of_an_operation_may_complete_one_that_was_checked(world: World) -> None:
    """The second one's end makes the first one, already looked at, ready; and puts another beside them."""
    purgatory, first, late = make(), Operation(), Operation()

    def set_off() -> None:
        first.ready = True
        purgatory.try_complete_else_watch(late, ["a"])
        purgatory.check_and_complete("a")

    second = Operation(then=set_off)
    for operation in (first, second):
        purgatory.try_complete_else_watch(operation, ["a"])
    second.ready = True
    purgatory.check_and_complete("a")
    assert (first.ends, second.ends, late.ends) == (["completed"], ["completed"], [])
    assert purgatory.watched == purgatory.num_delayed == 1
    purgatory.shutdown()


@virtual
async def test_an_operation_that_fails_takes_no_other_with_it(world: World, caplog: pytest.LogCaptureFixture) -> None:
    purgatory, good = make(), Operation()

    def fail() -> None:
        raise RuntimeError("broken")

    bad, late = Operation(then=fail), Operation(5, then=fail)
    for operation in (bad, good, late):
        purgatory.try_complete_else_watch(operation, ["a"])
    bad.ready = good.ready = True
    with caplog.at_level(logging.ERROR):
        assert purgatory.check_and_complete("a") == 1
        await asyncio.sleep(1)
    assert good.ends == ["completed"]
    assert [record.message for record in caplog.records] == ["an operation in the purgatory Test failed"] * 2
    assert purgatory.num_delayed == 0


@virtual
async def test_the_lists_of_keys_that_nothing_happens_to_are_purged(world: World) -> None:
    purgatory = make(purge_interval=10)
    for _ in range(100):
        operation = Operation()
        purgatory.try_complete_else_watch(operation, ["busy", "quiet"])
        operation.ready = True
        purgatory.check_and_complete("busy")
        assert purgatory.watched <= 11
    purgatory.shutdown()


@virtual
async def test_shutdown_resolves_everything(world: World) -> None:
    purgatory = make()
    operations = [Operation(delay) for delay in (5, 500, 50_000)]
    for at, operation in enumerate(operations):
        purgatory.try_complete_else_watch(operation, ["a"] * at)
    purgatory.shutdown()
    late = Operation()
    assert purgatory.try_complete_else_watch(late, ["a"])
    assert [operation.ends for operation in [*operations, late]] == [["completed", "expired"]] * 4
    assert (purgatory.num_delayed, purgatory.watched) == (0, 0)
    purgatory.shutdown()


KEYS = st.sampled_from("abc")
ACTIONS = st.lists(
    st.tuples(st.just("add"), st.integers(-1, 30), st.lists(KEYS, max_size=3))
    | st.tuples(st.just("event"), KEYS)
    | st.tuples(st.just("ready"), st.integers(0, 50))
    | st.tuples(st.just("abandon"), st.integers(0, 50))
    | st.tuples(st.just("sleep"), st.integers(1, 40)),
    max_size=60,
)


@given(actions=ACTIONS, purge_interval=st.integers(0, 5), shut=st.booleans())
def test_against_a_naive_one(actions: list[tuple[object, ...]], purge_interval: int, shut: bool) -> None:
    """The purgatory against a list of operations with their keys and deadlines. Every operation ends exactly once."""

    @virtual
    async def compare(world: World) -> None:
        await act_on_both(actions, purge_interval, shut)

    compare()


async def act_on_both(actions: list[tuple[object, ...]], purge_interval: int, shut: bool) -> None:
    # Steps of 100 ms, and whatever falls due does so in the middle of one: a loop's timers are late.
    loop = asyncio.get_running_loop()
    began, now = loop.time(), 0
    purgatory = make(purge_interval)
    operations: list[Operation] = []
    keys: list[list[str]] = []
    expected: list[list[str]] = []
    until: list[float] = []

    def expire(now: float) -> None:
        for at, end in enumerate(until):
            if not expected[at] and end <= now:
                expected[at] = ["completed", "expired"]

    for kind, *what in actions:
        match kind, what:
            case "add", [int(steps), list(watched)]:
                delay_ms = 100 * steps + 50
                operation = Operation(delay_ms)
                purgatory.try_complete_else_watch(operation, watched)
                operations.append(operation)
                keys.append(watched)
                expected.append([])
                until.append(loop.time() + delay_ms / 1000)
            case "event", [str(key)]:
                purgatory.check_and_complete(key)
                for at, operation in enumerate(operations):
                    if operation.ready and key in keys[at] and not expected[at]:
                        expected[at] = ["completed"]
            case "ready", [int(at)] if at < len(operations):
                operations[at].ready = True
            case "abandon", [int(at)] if at < len(operations):
                operations[at].abandon()
                expected[at] = expected[at] or ["abandoned"]
            case "sleep", [int(steps)]:
                now += steps
                await asyncio.sleep(began + now / 10 - loop.time())
                expire(loop.time())
    if shut:
        purgatory.shutdown()
        expire(math.inf)
    else:
        await asyncio.sleep(10)
        expire(loop.time())
    ends = [operation.ends or ["abandoned"] for operation in operations]
    assert ends == expected
    assert purgatory.num_delayed == 0


@virtual
async def test_each_purgatory_of_a_node_has_its_own_interval(world: World) -> None:
    names = ("fetch", "producer", "delete.records")
    config = BrokerConfig.of({f"{name}.purgatory.purge.interval.requests": 10 * n for n, name in enumerate(names, 1)})
    purgatories = Purgatories(LoopClock(), config)
    for purgatory, interval in zip(purgatories, (10, 20, 30), strict=True):
        watched = []
        for _ in range(100):
            operation = Operation()
            purgatory.try_complete_else_watch(operation, ["busy", "quiet"])
            operation.ready = True
            purgatory.check_and_complete("busy")
            watched.append(purgatory.watched)
        assert max(watched) == interval + 1
    purgatories.shutdown()


@virtual
async def test_a_fatal_error_is_reported_and_later_operations_are_completed(world: World) -> None:
    """It may come where nobody would hear of it: in a timer."""

    def fail() -> None:
        raise FatalExitError("no way on")

    reported: list[str] = []
    purgatory = make(on_fatal=lambda error: reported.append(str(error)))
    doomed, woken, later = Operation(10, then=fail), Operation(50, then=fail), Operation(100)
    for operation in (doomed, woken, later):
        purgatory.try_complete_else_watch(operation, ["a"])
    await asyncio.sleep(0.02)
    assert reported == ["no way on"]
    woken.ready = True
    purgatory.check_and_complete("a")
    assert reported == ["no way on"] * 2
    await asyncio.sleep(0.2)
    assert later.ends == ["completed", "expired"]


@virtual
async def test_without_a_node_a_fatal_error_is_raised(world: World) -> None:
    def fail() -> None:
        raise FatalExitError("no way on")

    operation = Operation(then=fail)
    operation.ready = True
    purgatory = make()
    purgatory.watch(operation, "a")
    with pytest.raises(FatalExitError):
        purgatory.check_and_complete("a")
