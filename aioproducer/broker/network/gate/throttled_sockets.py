"""Keeps connections of addresses that exceed their rate open for a while, so that clients do not reconnect at once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from heapq import heappop, heappush

from aioproducer.broker.network.gate.listening_socket import AcceptedSocket

MAX_THROTTLED = 1000
"""Connections; each takes a file descriptor. When another one comes, the one that is due next is closed early."""

CLOSED_AT_ONCE = 20
"""Connections closed in one turn of the loop. Delays end with the quota's window, so a thousand may end together."""


class ThrottledSockets:
    """The throttled connections of a node, ordered by when they are closed (Kafka's ``throttledSockets``)."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        # The number orders connections that are due together.
        self._due: list[tuple[float, int, AcceptedSocket]] = []
        self._numbers = itertools.count()
        self._timer: asyncio.Handle | None = None
        self._timer_due = 0.0

    def __len__(self) -> int:
        return len(self._due)

    def add(self, connection: AcceptedSocket, delay: float) -> None:
        """Closes the connection after ``delay`` seconds."""
        if len(self._due) >= MAX_THROTTLED:
            self._close_next()
        heappush(self._due, (self._now() + delay, next(self._numbers), connection))
        if self._timer is None or self._due[0][0] < self._timer_due:
            self._set_timer()

    def close(self) -> None:
        """Closes them all."""
        while self._due:
            self._close_next()
        self._set_timer()

    def _close_next(self) -> None:
        heappop(self._due)[2].close()

    def _close_due(self) -> None:
        for _ in range(CLOSED_AT_ONCE):
            if not self._due or self._due[0][0] > self._now():
                break
            self._close_next()
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due:
            loop = asyncio.get_running_loop()
            self._timer_due = self._due[0][0]
            left = self._timer_due - self._now()
            self._timer = loop.call_later(left, self._close_due) if left > 0 else loop.call_soon(self._close_due)
