"""Whose CPU time it is: one thread runs the producer, and all that is around it."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PRODUCER: Final = 0
MODEL: Final = 1
"""The brokers and the network."""
APPLICATION: Final = 2
"""What sends records, and what strikes the brokers."""
COLLECTOR: Final = 3
"""Python's garbage collector, in whosever time it came."""
LOOP: Final = 4
"""The simulated event loop between two callbacks."""

_OWNERS: Final = 5


class CpuMeter:
    """Seconds of this thread's CPU time by owner. At each moment one owner has it; ``switch`` hands it over."""

    def __init__(self) -> None:
        self.seconds = [0.0] * _OWNERS
        """Up to the last change of owner."""
        self.longest_collection = 0.0
        self._owner = LOOP
        self._interrupted = LOOP
        self._since = time.thread_time()

    def switch(self, owner: int) -> int:
        """Gives the time from now on to another owner; returns the one that had it."""
        now = time.thread_time()
        before = self._owner
        self.seconds[before] += now - self._since
        self._since = now
        self._owner = owner
        return before

    @contextmanager
    def of(self, owner: int) -> Iterator[None]:
        """Within this block the time belongs to ``owner``."""
        before = self.switch(owner)
        try:
            yield
        finally:
            self.switch(before)

    def producer(self) -> float:
        """The producer's seconds until this moment."""
        seconds = self.seconds[PRODUCER]
        return seconds + time.thread_time() - self._since if self._owner == PRODUCER else seconds

    @contextmanager
    def watching_collector(self) -> Iterator[None]:
        """Within this block the garbage collector has its own account."""
        gc.callbacks.append(self._collect)
        try:
            yield
        finally:
            gc.callbacks.remove(self._collect)

    def _collect(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._interrupted = self.switch(COLLECTOR)
        else:
            before = self.seconds[COLLECTOR]
            self.switch(self._interrupted)
            self.longest_collection = max(self.longest_collection, self.seconds[COLLECTOR] - before)
