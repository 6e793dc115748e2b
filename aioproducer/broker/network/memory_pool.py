"""How much memory the requests of all clients may take before they are handled."""

from __future__ import annotations

from random import Random
from typing import Protocol

from aioproducer.broker.network.idle_meter import IdleMeter
from aioproducer.configs.config_def import LONG_MAX
from aioproducer.timing.clock import Clock


class Receiver(Protocol):
    """A connection, as far as the pool knows it."""

    def memory_available(self) -> None:
        """It may read on."""


class MemoryPool:
    """``queued.max.request.bytes``: bytes that were received and not yet handled, whole requests and parts of them.

    Memory is taken as bytes come, not as sizes announce it. Who finds nothing left reads no more until there is some
    again. Who is let on first then is drawn, as in Kafka, so that no order of connections starves anybody.

    Parts of requests alone could use it all up, and then none would ever be whole. So one receiver at a time may read
    its request to the end all the same. At most one request, and a little that was under way, is beyond the limit.
    """

    def __init__(self, size: int, random: Random, clock: Clock) -> None:
        """``size`` of 0 or less is no limit."""
        self._size = size
        self._random = random
        self._now = clock.monotonic
        # At rest while nobody waits.
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
        """Bytes; negative by as much as the limit is exceeded. Without a limit as many as Kafka says."""
        return self._size - self._used if self.is_limited else LONG_MAX

    @property
    def used(self) -> int:
        """Bytes; not counted without a limit."""
        return self._used

    def depleted_percent(self, now: float) -> float:
        """Which share of the time somebody waited for memory, 0 to 1 (Kafka's ``MemoryPoolAvgDepletedPercent``)."""
        return 1.0 - self._enough.share(1, now)

    def depleted_time(self, now: float) -> float:
        """For how many seconds, in all (Kafka's ``MemoryPoolDepletedTimeTotal``)."""
        return self._depleted_time + (0.0 if self._depleted_since is None else now - self._depleted_since)

    def reserve(self, count: int) -> None:
        """So many bytes have come."""
        self._used += count

    def may_read(self, receiver: Receiver) -> bool:
        """Whether a receiver may go on; if not it is told when it may."""
        if self.available > 0 or receiver is self._favourite:
            return True
        if self._favourite is None:
            self._favourite = receiver
            return True
        self._waiting[receiver] = None
        self._meter()
        return False

    def release(self, receiver: Receiver, count: int) -> None:
        """A request of this receiver has been handled, or this many of its bytes were dropped."""
        self._used -= count
        if receiver is self._favourite:
            self._favourite = None
        self._let_on()

    def forget(self, receiver: Receiver) -> None:
        """It reads nothing more."""
        self._waiting.pop(receiver, None)
        if receiver is self._favourite:
            self._favourite = None
            self._let_on()
        self._meter()

    def _let_on(self) -> None:
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
        """Notes whether anybody waits."""
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
