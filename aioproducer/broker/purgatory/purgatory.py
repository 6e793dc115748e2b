"""A purgatory: keeps the operations that cannot be completed yet."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Hashable, Iterable
from functools import partial

from aioproducer.broker.purgatory.delayed_operation import DelayedOperation
from aioproducer.broker.purgatory.timing_wheel import Timer
from aioproducer.broker.requests.fatal_exit_error import FatalExitError
from aioproducer.timing.clock import Clock

log = logging.getLogger(__name__)

PURGE_INTERVAL = 1000


def raise_fatal(error: FatalExitError) -> None:
    raise error


class DelayedOperationPurgatory:
    """Operations that wait for an event of one of the keys they watch, or for their time-out.

    Kafka's class of this name. Instead of a reaper thread that polls every 200 ms, there is one timer of the loop, set
    to the next bucket of the wheel that falls due. Locks and shards are not needed, because one task runs at a time.
    However, an operation may call the purgatory again before it returns.

    An operation that has ended may stay in the lists of other keys. All lists are purged when an estimated number of
    more than ``purge_interval`` such operations is reached (KAFKA-1989).
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        *,
        purge_interval: int = PURGE_INTERVAL,
        on_fatal: Callable[[FatalExitError], object] = raise_fatal,
    ) -> None:
        """``on_fatal`` is called when an operation has raised a fatal error; it must stop the node."""
        self.name = name
        self._clock = clock
        self._purge_interval = purge_interval
        self._timer: Timer[DelayedOperation] = Timer(self._now_ms())
        self._watchers: dict[Hashable, list[DelayedOperation]] = {}
        self._estimated_operations = 0
        self._reaper: asyncio.TimerHandle | None = None
        self._reaper_ms = 0
        self._closed = False
        self._on_fatal = on_fatal

    @property
    def num_delayed(self) -> int:
        """The number of waiting operations (Kafka's ``NumDelayedOperations``)."""
        return len(self._timer)

    @property
    def watched(self) -> int:
        """Entries in the lists of all keys, including those of ended operations (Kafka's ``PurgatorySize``)."""
        return sum(map(len, self._watchers.values()))

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> bool:
        """Completes the operation now if possible, and returns whether it did; otherwise the operation waits.

        After :meth:`shutdown` every operation is completed at once.
        """
        if operation.try_complete() or not self.start(operation):
            return True
        # Kafka tries once more after this, because other threads run meanwhile. Here no event can have come.
        for key in keys:
            self.watch(operation, key)
        return False

    def start(self, operation: DelayedOperation) -> bool:
        """Starts the time-out of an operation, before its keys are watched. Returns False if that is over already, so
        that the operation has been completed."""
        if self._closed:
            self._expire(operation)
            return False
        # Rounded up, so that no operation times out too early.
        operation.expiration_ms = math.ceil(self._clock.monotonic() * 1000) + operation.delay_ms
        if not self._timer.add(operation):
            self._expire(operation)
            return False
        self._estimated_operations += 1
        self._purge_if_due()
        self._set_reaper()
        return True

    def watch(self, operation: DelayedOperation, key: Hashable) -> None:
        """Tries a started operation at each event of ``key``."""
        self._watchers.setdefault(key, []).append(operation)

    def unwatch(self, operation: DelayedOperation, key: Hashable) -> None:
        """Removes an operation that has ended. Those that watch few keys may stay in their lists until a purge."""
        watchers = self._watchers.get(key, [])
        if operation in watchers:
            watchers.remove(operation)
            if not watchers:
                del self._watchers[key]

    def check_and_complete(self, key: Hashable) -> int:
        """Tries the operations that watch ``key``, after an event. Returns how many were completed."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed = 0
        # A copy, because an operation may cause changes of the list.
        for operation in tuple(watchers):
            if not operation.is_completed and self._guarded(partial(operation.try_complete_after, key)):
                completed += 1
        self._purge(key)
        return completed

    def shutdown(self) -> None:
        """Completes all waiting operations as at their time-outs; later ones are completed at once."""
        self._closed = True
        for operation in self._timer.clear():
            self._expire(operation)
        self._watchers.clear()
        self._set_reaper()

    def _expire(self, operation: DelayedOperation) -> None:
        if self._guarded(operation.force_complete):
            self._guarded(operation.on_expiration)

    def _guarded(self, act: Callable[[], bool | None]) -> bool:
        """Logs the failure of an operation, so that the others continue."""
        try:
            return bool(act())
        except FatalExitError as error:
            self._on_fatal(error)
            return False
        except Exception:
            log.exception("an operation in the purgatory %s failed", self.name)
            return False

    # purging

    def _purge_if_due(self) -> None:
        if self._estimated_operations - self.num_delayed > self._purge_interval:
            # Before the purge: the estimate may be too high but not too low, as in Kafka.
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
