"""Bounds the memory of requests that wait to be handled, over all clients."""

from __future__ import annotations

from random import Random
from typing import Protocol

from aioproducer.broker.network.idle_meter import IdleMeter
from aioproducer.configs.config_def import LONG_MAX
from aioproducer.timing.clock import Clock


class Receiver(Protocol):
    """A connection that takes memory from the pool."""

    def memory_available(self) -> None:
        """Resumes reading."""


class MemoryPool:
    """``queued.max.request.bytes``: the bytes of whole and partial requests that are received and not yet handled.

    Memory is reserved as bytes arrive, not as sizes are announced. A receiver that finds none left stops reading until
    some is released. Receivers then resume in random order, as in Kafka, so that none starves.

    Partial requests alone could take all the memory, and then none would ever complete. So one receiver at a time, the
    favourite, may read its request to the end regardless. The limit is exceeded by at most one request and a little
    that was on its way.
    """

    def __init__(self, size: int, random: Random, clock: Clock) -> None:
        """A ``size`` of 0 or less sets no limit."""
        self._size = size
        self._random = random
        self._now = clock.monotonic
        # At rest while no receiver waits.
        now = clock.monotonic()
        self._enough = IdleMeter(now)
        self._enough.rest(now)
        self._depleted_since: float | None = None
        self._depleted_time = 0.0
        self._used = 0
        self._waiting: dict[Receiver, None] = {}
        self._favourite: Receiver | None = None

    @property
    def is_limited(self) -> bool:
        return self._size > 0

    @property
    def available(self) -> int:
        """Bytes; negative if the limit is exceeded. Without a limit, the number that Kafka reports."""
        return self._size - self._used if self.is_limited else LONG_MAX

    @property
    def used(self) -> int:
        """Bytes; always 0 without a limit."""
        return self._used

    def depleted_percent(self, now: float) -> float:
        """The share of the time, 0 to 1, that a receiver waited (Kafka's ``MemoryPoolAvgDepletedPercent``)."""
        return 1.0 - self._enough.share(1, now)

    def depleted_time(self, now: float) -> float:
        """The lifetime total of those seconds (Kafka's ``MemoryPoolDepletedTimeTotal``)."""
        return self._depleted_time + (0.0 if self._depleted_since is None else now - self._depleted_since)

    def reserve(self, count: int) -> None:
        """Takes memory for bytes that have arrived."""
        self._used += count

    def may_read(self, receiver: Receiver) -> bool:
        """Whether a receiver may continue. If not, its ``memory_available`` is called when it may."""
        if self.available > 0 or receiver is self._favourite:
            return True
        if self._favourite is None:
            self._favourite = receiver
            return True
        self._waiting[receiver] = None
        self._meter()
        return False

    def release(self, receiver: Receiver, count: int) -> None:
        """Gives back the bytes of a handled request, or of one that was dropped."""
        self._used -= count
        if receiver is self._favourite:
            self._favourite = None
        self._resume_waiting()

    def forget(self, receiver: Receiver) -> None:
        """Removes a receiver that reads nothing more."""
        self._waiting.pop(receiver, None)
        if receiver is self._favourite:
            self._favourite = None
            self._resume_waiting()
        self._meter()

    def _resume_waiting(self) -> None:
        if not self._waiting or (self.available <= 0 and self._favourite is not None):
            return
        order = list(self._waiting)
        self._random.shuffle(order)
        for receiver in order:
            if self.available <= 0 and self._favourite is not None:
                break
            del self._waiting[receiver]
            if self.available <= 0:
                self._favourite = receiver
            receiver.memory_available()
        self._meter()

    def _meter(self) -> None:
        """Updates the metrics if the first receiver begins to wait, or the last one stops."""
        if bool(self._waiting) is (self._depleted_since is not None):
            return
        now = self._now()
        if self._depleted_since is None:
            self._depleted_since = now
            self._enough.work(now)
        else:
            self._depleted_time = self.depleted_time(now)
            self._depleted_since = None
            self._enough.rest(now)
