"""Where a broker keeps what cannot be answered yet."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Hashable, Iterable
from functools import partial

from aioproducer.broker.purgatory.delayed_operation import DelayedOperation
from aioproducer.broker.purgatory.timing_wheel import Timer
from aioproducer.timing.clock import Clock

log = logging.getLogger(__name__)

PURGE_INTERVAL = 1000


class DelayedOperationPurgatory:
    """Operations that wait for something to happen to one of the keys they watch, or for their time to be up.

    Kafka's class of this name. Its reaper thread is one timer of the loop here, set to when the next bucket of the
    wheel falls due: nobody looks every 200 ms. Locks and shards are not needed where one task runs at a time. What
    remains of them: whatever an operation sets off may come back here before it returns.

    An operation that has ended may still be in the lists of keys that had no part in it. When more than
    ``purge_interval`` such operations are thought to be there, all lists are gone through (KAFKA-1989).
    """

    def __init__(self, name: str, clock: Clock, *, purge_interval: int = PURGE_INTERVAL) -> None:
        self.name = name
        self._clock = clock
        self._purge_interval = purge_interval
        self._timer: Timer[DelayedOperation] = Timer(self._now_ms())
        self._watchers: dict[Hashable, list[DelayedOperation]] = {}
        self._estimated_operations = 0
        self._reaper: asyncio.TimerHandle | None = None
        self._reaper_ms = 0
        self._closed = False

    @property
    def num_delayed(self) -> int:
        """How many operations wait (Kafka's ``NumDelayedOperations``)."""
        return len(self._timer)

    @property
    def watched(self) -> int:
        """Entries in the lists of all keys, those of ended operations included (Kafka's ``PurgatorySize``)."""
        return sum(map(len, self._watchers.values()))

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> bool:
        """Completes the operation if that can be done now, and says whether; else it waits.

        After :meth:`shutdown` nothing waits: the operation is completed at once.
        """
        if operation.try_complete() or not self.start(operation):
            return True
        # Kafka tries once more after this, as other threads run meanwhile. Here nothing can have happened.
        for key in keys:
            self.watch(operation, key)
        return False

    def start(self, operation: DelayedOperation) -> bool:
        """Its time runs; False if it is up already, and the operation completed. What it waits for is watched next."""
        if self._closed:
            self._expire(operation)
            return False
        # Rounded up: no operation's time is up too early.
        operation.expiration_ms = math.ceil(self._clock.monotonic() * 1000) + operation.delay_ms
        if not self._timer.add(operation):
            self._expire(operation)
            return False
        self._estimated_operations += 1
        self._purge_if_due()
        self._set_reaper()
        return True

    def watch(self, operation: DelayedOperation, key: Hashable) -> None:
        """Tries an operation that has been started whenever something happens to ``key``."""
        self._watchers.setdefault(key, []).append(operation)

    def unwatch(self, operation: DelayedOperation, key: Hashable) -> None:
        """It has ended. Those that watch few keys may stay in their lists until these are gone through."""
        watchers = self._watchers.get(key, [])
        if operation in watchers:
            watchers.remove(operation)
            if not watchers:
                del self._watchers[key]

    def check_and_complete(self, key: Hashable) -> int:
        """Something happened to ``key``: tries the operations that watch it. How many were completed."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed = 0
        # A copy: what is set off may add to the list, or look at it too.
        for operation in tuple(watchers):
            if not operation.is_completed and self._guarded(partial(operation.try_complete_after, key)):
                completed += 1
        self._purge(key)
        return completed

    def shutdown(self) -> None:
        """Completes everything that waits, as if its time was up; what comes later is completed at once."""
        self._closed = True
        for operation in self._timer.clear():
            self._expire(operation)
        self._watchers.clear()
        self._set_reaper()

    def _expire(self, operation: DelayedOperation) -> None:
        if self._guarded(operation.force_complete):
            self._guarded(operation.on_expiration)

    def _guarded(self, act: Callable[[], bool | None]) -> bool:
        """An operation that fails takes no other with it."""
        try:
            return bool(act())
        except Exception:
            log.exception("an operation in the purgatory %s failed", self.name)
            return False

    # purging

    def _purge_if_due(self) -> None:
        if self._estimated_operations - self.num_delayed > self._purge_interval:
            # Before the lists: the estimate may be too high but not too low, as in Kafka.
            self._estimated_operations = self.num_delayed
            for key in tuple(self._watchers):
                self._purge(key)

    def _purge(self, key: Hashable) -> None:
        left = [operation for operation in self._watchers.get(key, ()) if not operation.is_completed]
        if left:
            self._watchers[key] = left
        else:
            self._watchers.pop(key, None)

    # the reaper

    def _now_ms(self) -> int:
        return math.floor(self._clock.monotonic() * 1000)

    def _set_reaper(self) -> None:
        next_ms = self._timer.next_expiration_ms
        if self._reaper is not None:
            if next_ms is not None and self._reaper_ms <= next_ms:
                return  # early at worst: most operations are completed before, and a timer for each costs more
            self._reaper.cancel()
            self._reaper = None
        if next_ms is not None:
            self._reaper_ms = next_ms
            delay = max(0.0, next_ms / 1000 - self._clock.monotonic())
            self._reaper = asyncio.get_running_loop().call_later(delay, self._reap)

    def _reap(self) -> None:
        self._reaper = None
        for operation in self._timer.advance(self._now_ms()):
            self._expire(operation)
        self._purge_if_due()
        self._set_reaper()
