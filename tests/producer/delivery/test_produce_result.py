from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aioproducer.errors import DeliveryError, IllegalStateException, Outcome
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import (
    ABORTED,
    FAILED,
    FORWARDED,
    PENDING,
    SUCCEEDED,
    ProduceResult,
)
from tests.producer.simulations.standing_loop import (
    NOW_MS,
    CountingLot,
    Future,
    Hooks,
    Loop,
    audience,
    failure,
    new_result,
    park,
    sizes,
    succeed,
    waiting,
)


def test_a_result_that_did_not_fail_has_no_error() -> None:
    result = new_result(Loop())
    succeed(result)
    with pytest.raises(IllegalStateException):
        result.raised(0)


def test_only_what_is_pending_is_forwarded() -> None:
    result, other = new_result(Loop(), "t", 0), new_result(Loop())
    succeed(result)
    with pytest.raises(IllegalStateException, match="still pending"):
        result.forward([(0, other, 0)])


def test_waiters_and_callbacks_observe_the_failures_of_their_records() -> None:
    loop = Loop()
    result = new_result(loop)
    first, second = Delivery(result, 0), Delivery(result, 1)
    assert result.unobserved(3) == 3
    flush = first.settled()
    assert result.unobserved(3) == 3  # it does not say what failed
    task = waiting(first)
    assert result.unobserved(3) == 2
    second.add_done_callback(lambda delivery: None)
    second.add_done_callback(lambda delivery: None)
    assert result.unobserved(3) == 1
    task.cancel()
    assert result.unobserved(3) == 2
    first.add_done_callback(lambda delivery: None)
    assert result.unobserved(3) == 1
    assert not flush.done()


@pytest.mark.parametrize("ask", ["result", "exception", "await"])
def test_a_result_knows_whether_its_failure_was_observed(ask: str) -> None:
    result = new_result(Loop())
    delivery = Delivery(result, 0)
    flush = delivery.settled()
    task = waiting(delivery) if ask == "await" else None
    result.fail(failure())
    assert flush.done()
    assert delivery.outcome is Outcome.UNKNOWN
    assert result.error_seen == (task is not None)
    if ask == "exception":
        delivery.exception()
    elif ask == "result":
        with pytest.raises(DeliveryError):
            delivery.result()
    assert result.error_seen


@pytest.mark.parametrize("end", ["succeed", "fail", "forward"])
def test_holds_nobody_any_more_once_it_is_over(end: str) -> None:
    """Handles are in no cycle that lasts: the garbage collector does not look at them."""
    here = audience(Loop())
    result, target = ProduceResult(here, "t", 0), ProduceResult(here, "t", 0)
    delivery = Delivery(result, 0)
    delivery.add_done_callback(lambda _: None)
    _ = waiting(delivery)
    result.watched = True
    if end == "succeed":
        succeed(result)
    elif end == "fail":
        result.fail(failure())
    else:
        result.forward([(0, target, 0)])
    listeners = result.present_audience().listeners
    assert list(listeners) == ([] if end != "forward" else [target])
    assert not result.watched
    assert result.number_waiting() == 0


def test_the_next_task_that_awaits_a_record_is_noticed_once() -> None:
    result = new_result(Loop())
    _ = waiting(Delivery(result, 0))
    seen: list[int] = []
    result.watched = True
    result.present_audience().on_awaited = lambda result: seen.append(result.number_waiting())
    for index in (1, 2):
        _ = waiting(Delivery(result, index))
    assert seen == [2]


def test_a_task_that_awaited_a_parked_record_awaits_the_batch_it_went_to() -> None:
    parked, batch = new_result(Loop(), "t", 0), new_result(Loop())
    _ = waiting(Delivery(parked, 0))
    seen: list[int] = []
    batch.watched = True
    batch.present_audience().on_awaited = lambda result: seen.append(result.number_waiting())
    parked.forward([(0, batch, 5)])
    assert seen == [1]


# Who awaits a record that is parked


def test_the_lot_learns_of_every_task_that_awaits_and_of_every_task_that_is_cancelled() -> None:
    loop, lot = Loop(), CountingLot()
    result = new_result(loop)
    park(result, lot)
    delivery = Delivery(result, 0)
    first, second = waiting(delivery), waiting(delivery)
    assert (lot.awaiting, lot.cancelled) == (2, 0)
    first.cancel()
    loop.run()
    assert lot.cancelled == 1
    delivery.add_done_callback(print)
    _ = delivery.settled()
    assert lot.awaiting == 2
    succeed(result)
    loop.run()
    assert second.done()
    assert lot.cancelled == 1


def test_the_lot_does_not_learn_of_a_task_that_is_cancelled_when_the_record_was_placed() -> None:
    loop, lot = Loop(), CountingLot()
    result = new_result(loop)
    park(result, lot)
    task = waiting(Delivery(result, 0))
    result.forward([(0, new_result(loop), 5)])
    result.parked = False  # as the lot does
    task.cancel()
    loop.run()
    assert lot.cancelled == 0


# Interceptors


@pytest.mark.parametrize("succeeds", [True, False])
def test_interceptors_see_the_end_first(succeeds: bool) -> None:
    hooks = Hooks()
    result = new_result(Loop(), "t", 0, hooks)
    for index in (0, 2):
        result.intercept(index, (("h", b"%d" % index),))
    told_before: list[int] = []
    Delivery(result, 0).add_done_callback(lambda done: told_before.append(len(hooks.told)))
    assert succeed(result) if succeeds else result.fail(failure())
    assert hooks.told == [(result, [(0, (("h", b"0"),)), (2, (("h", b"2"),))])]
    assert told_before == [1]


def test_an_interceptor_does_not_count_as_an_observer_of_failures() -> None:
    result = new_result(Loop(), "t", 0, Hooks())
    result.intercept(0, ())
    assert result.unobserved(1) == 1


def test_interceptors_follow_a_result_wherever_it_is_forwarded() -> None:
    """A parked record to its batch, and a split batch to its children, in record order."""
    hooks, loop = Hooks(), Loop()
    parked, batch = new_result(loop, "t", 0, hooks), new_result(loop, "t", 0, hooks)
    children = [new_result(loop, "t", 0, hooks), new_result(loop, "t", 0, hooks)]
    a, b, c, d = (((name, None),) for name in "abcd")
    parked.intercept(0, a)
    batch.intercept(0, b)
    parked.forward([(0, batch, 1)])
    batch.intercept(2, c)
    batch.forward([(0, children[0], 0), (2, children[1], 0)])
    batch.intercept(3, d)
    assert hooks.told == []
    succeed(children[0], 2)
    children[1].fail(failure())
    assert hooks.told == [(children[0], [(0, b), (1, a)]), (children[1], [(0, c), (1, d)])]


@pytest.mark.parametrize("headers", [0, 1, 5])
def test_records_kept_for_interceptors_count_no_less_than_they_take(headers: int) -> None:
    result = new_result(Loop(), "t", 0, Hooks())
    gc.collect()
    tracemalloc.start()
    try:
        for index in range(1000, 6000):
            result.intercept(index, tuple([(f"header {index}", b"%d" % index * 5) for _ in range(headers)]))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken <= result.kept <= 3 * taken


def test_intercepting_what_is_done_tells_at_once() -> None:
    hooks = Hooks()
    result = new_result(Loop(), "t", 0, hooks)
    succeed(result)
    result.intercept(3, ())
    assert hooks.told == [(result, [(3, ())])]


def test_a_bug_in_telling_interceptors_leaves_nobody_waiting() -> None:
    class Broken(Hooks):
        def on_acknowledgement(self, result: ProduceResult, records: list[tuple[int, Any]]) -> None:
            raise RuntimeError("a bug")

    result = new_result(Loop(), "t", 0, Broken())
    result.intercept(0, ())
    future = waiting(Delivery(result, 0))
    with pytest.raises(RuntimeError, match="a bug"):
        succeed(result)
    assert future.result().offset == 1000


# Any course of things, against a model


class ResultMachine(RuleBasedStateMachine):
    """A parked record goes into a batch, batches are split: everybody is told the right thing, once, in order."""

    RECORDS = 6
    PLACES = 100  # no chain of forwardings in one run shifts a record further than this

    @initialize()
    def begin(self) -> None:
        self.loop = Loop()
        self.root = new_result(self.loop)
        # Where each record is now, and the results that may still go on.
        self.place: dict[int, tuple[ProduceResult, int]] = {index: (self.root, index) for index in range(self.RECORDS)}
        self.pending = [self.root]
        self.ended: dict[int, int | str] = {}
        self.deliveries = {index: Delivery(self.root, index) for index in range(self.RECORDS)}
        self.futures: list[tuple[int, Future]] = []
        self.whole: list[Future] = []
        self.calls: list[int] = []
        self.calls_due: list[int] = []
        self.offset = 100

    def _where(self, index: int) -> ProduceResult:
        return self.place[index][0]

    @rule(index=st.integers(0, RECORDS - 1), old=st.booleans())
    def wait(self, index: int, old: bool) -> None:
        future = self.loop.create_future()
        if old:  # as if asked through a result that was forwarded long ago
            self.root.add_waiter(index, future)
        else:
            delivery = self.deliveries[index]
            delivery.done()
            result, place = self.place[index]
            result.add_waiter(place, future)
        self.futures.append((index, future))

    @rule(data=st.data())
    @precondition(lambda self: self.futures)
    def cancel(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.futures))[1].cancel()

    @rule(index=st.integers(0, RECORDS - 1))
    def wait_for_the_whole(self, index: int) -> None:
        future = self.deliveries[index].settled()
        assert future.done() == (index in self.ended)
        self.whole.append(future)

    @rule(index=st.integers(0, RECORDS - 1), raises=st.booleans())
    def add_callback(self, index: int, raises: bool) -> None:
        def callback(delivery: Delivery) -> None:
            assert delivery is self.deliveries[index]
            assert delivery.done()
            self.calls.append(index)
            if raises:
                raise ValueError("a bug of the user")

        self.deliveries[index].add_done_callback(callback)
        self.calls_due.append(index)

    @rule(data=st.data())
    @precondition(lambda self: self.pending)
    def forward(self, data: st.DataObject) -> None:
        """Splits a pending result in up to three; each child may take in records of others before, as batches do."""
        result = data.draw(st.sampled_from(self.pending))
        mine = sorted(index for index in self.place if self._where(index) is result)
        cuts = sorted(data.draw(st.sets(st.sampled_from(mine[1:]), max_size=2))) if len(mine) > 1 else []
        targets: list[tuple[int, ProduceResult, int]] = []
        for first, last in zip([mine[0], *cuts], [*cuts, self.RECORDS], strict=True):
            child, shift = new_result(self.loop), data.draw(st.integers(0, 3))
            targets.append((self.place[first][1] if targets else 0, child, shift))
            base = targets[-1][0]
            for index in mine:
                if first <= index < last:
                    self.place[index] = (child, shift + self.place[index][1] - base)
            self.pending.append(child)
        self.pending.remove(result)
        result.forward(targets)
        assert result.state == FORWARDED

    @rule(data=st.data(), fails=st.booleans(), aborted=st.booleans())
    @precondition(lambda self: self.pending)
    def end(self, data: st.DataObject, fails: bool, aborted: bool) -> None:
        result = data.draw(st.sampled_from(self.pending))
        self.pending.remove(result)
        mine = [index for index in self.place if self._where(index) is result]
        calls = len(self.calls)
        if fails:
            assert result.fail(failure(f"failed {self.offset}"), aborted)
            assert result.state == (ABORTED if aborted else FAILED)
            self.ended.update(dict.fromkeys(mine, f"failed {self.offset}"))
        else:
            assert result.succeed(self.offset, -1, NOW_MS, sizes(self.PLACES))
            assert result.state == SUCCEEDED
            self.ended.update({index: self.offset + self.place[index][1] for index in mine})
        assert self.calls[calls:] == sorted(self.calls[calls:])
        self.offset += 100

    @rule(data=st.data())
    @precondition(lambda self: self.ended)
    def end_again(self, data: st.DataObject) -> None:
        result = self._where(data.draw(st.sampled_from(sorted(self.ended))))
        state = result.state
        assert not result.succeed(5, -1, NOW_MS, sizes(self.PLACES))
        assert not result.fail(failure("too late"))
        assert result.state == state

    @invariant()
    def everybody_knows_what_is_known(self) -> None:
        self.loop.run()
        for index, delivery in self.deliveries.items():
            assert delivery.done() == (index in self.ended)
        for index, future in self.futures:
            assert future.told <= 1
            if not future.cancelled():
                assert future.done() == (index in self.ended)
                if future.done():
                    assert self._told(future) == self.ended[index]
        assert sorted(self.calls) == sorted(index for index in self.calls_due if index in self.ended)
        for index in self.ended:
            error = self.deliveries[index].exception()
            assert self.ended[index] == (self.deliveries[index].result().offset if error is None else str(error))

    @staticmethod
    def _told(future: Future) -> int | str:
        try:
            offset: int = future.result().offset
            return offset
        except DeliveryError as error:
            return str(error)

    def teardown(self) -> None:
        if hasattr(self, "pending"):
            for result in self.pending:
                assert result.state == PENDING
                succeed(result, self.PLACES)
            assert all(future.done() for _, future in self.futures)


ResultMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestResult = ResultMachine.TestCase


@given(data=st.data())
def test_a_record_is_found_wherever_its_result_was_forwarded(data: st.DataObject) -> None:
    loop = Loop()
    result = new_result(loop)
    firsts = [0, *sorted(data.draw(st.sets(st.integers(1, 30), max_size=5)))]
    children = [new_result(loop) for _ in firsts]
    shifts = [data.draw(st.integers(0, 5)) for _ in firsts]
    result.forward(list(zip(firsts, children, shifts, strict=True)))
    for index in range(35):
        child = max(number for number, first in enumerate(firsts) if first <= index)
        assert result.target(index) == (children[child], index - firsts[child] + shifts[child])


def test_a_waiter_on_a_forwarded_result_moves_to_its_target() -> None:
    loop = Loop()
    root, child, last = (new_result(loop) for _ in range(3))
    root.forward([(0, child, 3)])
    child.forward([(0, last, 10)])
    calls: list[str] = []
    future = loop.create_future()
    root.add_waiter(1, future)
    root.add_callback(1, lambda: calls.append("called"))
    assert Delivery(root, 1).place() == (last, 14)
    succeed(last, 20)
    assert future.result().offset == 1014
    assert calls == ["called"]
