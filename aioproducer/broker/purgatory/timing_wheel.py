"""Timers in constant time: hierarchical timing wheels (KAFKA-1989, Kafka's ``TimingWheel``).

A wheel is a ring of buckets, each for one tick. What falls due beyond its span goes to an overflow wheel, whose tick is
this wheel's whole span. When the bucket of a coarse wheel falls due its tasks are added anew, and land in finer ones.
Adding and cancelling cost the same however many tasks wait, and most tasks are cancelled long before they fall due.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, Generic, TypeAlias, TypeVar

TICK_MS = 1
WHEEL_SIZE = 20


class TimerTask:
    """Something that falls due at ``expiration_ms``. It waits in one timer at most."""

    def __init__(self, expiration_ms: int = 0) -> None:
        self.expiration_ms = expiration_ms
        self._bucket: _Bucket[Any] | None = None

    @property
    def waiting(self) -> bool:
        """It is in a timer."""
        return self._bucket is not None

    def cancel(self) -> None:
        """Takes it out of its timer. Harmless if it is in none."""
        if self._bucket is not None:
            self._bucket.remove(self)


T = TypeVar("T", bound=TimerTask)


class Timer(Generic[T]):
    """Tasks by when they fall due (Kafka's ``SystemTimer``, without its threads). Times are milliseconds."""

    def __init__(self, now_ms: int, *, tick_ms: int = TICK_MS, wheel_size: int = WHEEL_SIZE) -> None:
        self._due: _Due[T] = []
        self._tasks = _Count()
        self._wheel: _Wheel[T] = _Wheel(now_ms, tick_ms, wheel_size, self._due, self._tasks)

    def __len__(self) -> int:
        """How many tasks wait."""
        return self._tasks.value

    def add(self, task: T) -> bool:
        """Whether the task waits from now on; if not it is due already."""
        if task.waiting:
            raise ValueError("the task is in a timer already")
        return self._wheel.add(task)

    def clear(self) -> list[T]:
        """Takes out every task."""
        tasks = [task for _, _, bucket in self._due for task in bucket.flush()]
        self._due.clear()
        return tasks

    @property
    def next_expiration_ms(self) -> int | None:
        """When to :meth:`advance` next, None if nothing waits. Not later than the first task falls due."""
        while self._due and self._due[0][2].is_empty:
            heappop(self._due)[2].expiration_ms = None
        return self._due[0][0] if self._due else None

    def advance(self, now_ms: int) -> list[T]:
        """Takes out what is due at ``now_ms``, by its tick."""
        expired: list[T] = []
        while self._due and self._due[0][0] <= now_ms:
            expiration_ms, _, bucket = heappop(self._due)
            self._wheel.advance(expiration_ms)
            expired += [task for task in bucket.flush() if not self._wheel.add(task)]
        # Also without a bucket: a task added next is measured from now.
        self._wheel.advance(now_ms)
        return expired


class _Count:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class _Bucket(Generic[T]):
    """The tasks of one tick of a wheel. Kafka links them in a list; a dict forgets any of them as fast."""

    __slots__ = ("_count", "_tasks", "expiration_ms")

    def __init__(self, count: _Count) -> None:
        self._tasks: dict[T, None] = {}
        self._count = count
        self.expiration_ms: int | None = None
        """Under which it is among the due buckets, None if it is not."""

    @property
    def is_empty(self) -> bool:
        return not self._tasks

    def add(self, task: T) -> None:
        self._tasks[task] = None
        task._bucket = self
        self._count.value += 1

    def remove(self, task: T) -> None:
        del self._tasks[task]
        task._bucket = None
        self._count.value -= 1

    def flush(self) -> list[T]:
        tasks = list(self._tasks)
        for task in tasks:
            self.remove(task)
        self.expiration_ms = None
        return tasks


_Due: TypeAlias = list[tuple[int, int, _Bucket[T]]]
"""The buckets with tasks, of all wheels, as a heap by when they fall due. The second number makes them comparable."""


class _Wheel(Generic[T]):
    def __init__(self, now_ms: int, tick_ms: int, size: int, due: _Due[T], count: _Count) -> None:
        self._tick_ms = tick_ms
        self._interval_ms = tick_ms * size
        self._buckets: list[_Bucket[T]] = [_Bucket(count) for _ in range(size)]
        self._current_ms = now_ms - now_ms % tick_ms
        self._due = due
        self._count = count
        self._overflow: _Wheel[T] | None = None

    def add(self, task: T) -> bool:
        expiration_ms = task.expiration_ms
        if expiration_ms < self._current_ms + self._tick_ms:
            return False
        if expiration_ms >= self._current_ms + self._interval_ms:
            return self._coarser().add(task)
        tick = expiration_ms // self._tick_ms
        at = tick % len(self._buckets)
        bucket = self._buckets[at]
        bucket.add(task)
        if bucket.expiration_ms is None:
            # A bucket that is among the due ones has this tick: the others of its ring position are past or overflow.
            bucket.expiration_ms = tick * self._tick_ms
            heappush(self._due, (bucket.expiration_ms, self._tick_ms * len(self._buckets) + at, bucket))
        return True

    def advance(self, now_ms: int) -> None:
        if now_ms >= self._current_ms + self._tick_ms:
            self._current_ms = now_ms - now_ms % self._tick_ms
            if self._overflow is not None:
                self._overflow.advance(self._current_ms)

    def _coarser(self) -> _Wheel[T]:
        if self._overflow is None:
            self._overflow = _Wheel(self._current_ms, self._interval_ms, len(self._buckets), self._due, self._count)
        return self._overflow
