from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from aioproducer.broker.purgatory.timing_wheel import Timer, TimerTask


def due(timer: Timer[TimerTask], now_ms: int) -> list[int]:
    return [task.expiration_ms for task in timer.advance(now_ms)]


def test_a_task_that_is_due_does_not_wait() -> None:
    timer: Timer[TimerTask] = Timer(100)
    assert not timer.add(TimerTask(100))
    assert not timer.add(TimerTask(7))
    assert timer.add(TimerTask(101))
    assert len(timer) == 1


def test_tasks_fall_due_at_their_time_on_every_wheel() -> None:
    timer: Timer[TimerTask] = Timer(0, wheel_size=3)
    times = [1, 2, 3, 8, 9, 10, 26, 27, 28, 80, 81, 1000]
    for time in reversed(times):
        timer.add(TimerTask(time))
    for now in range(1001):
        assert due(timer, now) == [time for time in times if time == now]
    assert len(timer) == 0


def test_a_late_look_finds_all_that_is_due() -> None:
    timer: Timer[TimerTask] = Timer(0)
    for time in (3, 30, 300, 3000):
        timer.add(TimerTask(time))
    assert due(timer, 300) == [3, 30, 300]
    assert due(timer, 10_000) == [3000]


def test_a_cancelled_task_never_falls_due() -> None:
    timer: Timer[TimerTask] = Timer(0)
    task = TimerTask(500)
    timer.add(task)
    task.cancel()
    assert (task.waiting, len(timer), timer.next_expiration_ms) == (False, 0, None)
    assert due(timer, 1000) == []
    task.cancel()


def test_a_task_waits_in_one_timer() -> None:
    timer: Timer[TimerTask] = Timer(0)
    task = TimerTask(5)
    timer.add(task)
    with pytest.raises(ValueError, match="in a timer already"):
        timer.add(task)


def test_the_next_expiration_is_that_of_the_earliest_task() -> None:
    timer: Timer[TimerTask] = Timer(0)
    assert timer.next_expiration_ms is None
    timer.add(TimerTask(12))
    assert timer.next_expiration_ms == 12
    timer.add(TimerTask(7))
    assert timer.next_expiration_ms == 7


def test_cleared() -> None:
    timer: Timer[TimerTask] = Timer(0)
    tasks = [TimerTask(time) for time in (4, 40, 400)]
    for task in tasks:
        timer.add(task)
    assert timer.clear() == tasks
    assert (len(timer), timer.next_expiration_ms) == (0, None)
    timer.add(tasks[1])
    assert due(timer, 40) == [40]


class TimerAgainstNaive(RuleBasedStateMachine):
    """The wheels against a list that is looked through."""

    waiting: Bundle[TimerTask] = Bundle("waiting")

    @initialize(now=st.integers(0, 10_000), tick=st.integers(1, 5), size=st.integers(2, 20))
    def start(self, now: int, tick: int, size: int) -> None:
        self.now = now
        self.tick = tick
        self.timer: Timer[TimerTask] = Timer(now, tick_ms=tick, wheel_size=size)
        self.naive: set[TimerTask] = set()

    def _is_due(self, task: TimerTask) -> bool:
        return task.expiration_ms // self.tick <= self.now // self.tick

    @rule(target=waiting, delay=st.integers(-10, 5) | st.integers(0, 100_000))
    def add(self, delay: int) -> TimerTask:
        task = TimerTask(self.now + delay)
        assert self.timer.add(task) is not self._is_due(task)
        if task.waiting:
            self.naive.add(task)
        return task

    @rule(task=consumes(waiting))
    def cancel(self, task: TimerTask) -> None:
        task.cancel()
        self.naive.discard(task)

    @rule(by=st.integers(0, 30) | st.integers(0, 50_000))
    def advance(self, by: int) -> None:
        self.now += by
        expired = self.timer.advance(self.now)
        assert set(expired) == {task for task in self.naive if self._is_due(task)}
        ticks = [task.expiration_ms // self.tick for task in expired]
        assert ticks == sorted(ticks)
        self.naive -= set(expired)

    @rule()
    def advance_to_the_next(self) -> None:
        """Going from one time to look to the next never overshoots."""
        next_ms = self.timer.next_expiration_ms
        if next_ms is None:
            assert not self.naive
            return
        assert next_ms <= min(task.expiration_ms for task in self.naive)
        assert next_ms > self.now
        self.advance(next_ms - self.now)

    @rule()
    def clear(self) -> None:
        assert set(self.timer.clear()) == self.naive
        self.naive.clear()

    @invariant()
    def nothing_is_lost(self) -> None:
        assert len(self.timer) == len(self.naive)
        assert all(task.waiting for task in self.naive)


TestTimerAgainstNaive = TimerAgainstNaive.TestCase
