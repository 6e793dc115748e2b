"""Finds the largest request that a broker takes: its ``socket.request.max.bytes``, which no broker tells.

A broker that reads the length of a larger one closes the connection without an answer. So do a broker that stops, and a
network that fails. The largest request without an answer is therefore suspect at each end of a connection, and an
answer to one as large clears it. After two such ends in a row requests have at most half the size of the smallest
suspect. From the third on batches of more have to be split.

Rules only: no asyncio, no clock.
"""

from __future__ import annotations

import math
from typing import Final, final

from mypy_extensions import i64

from aioproducer.producer.batches.producer_batch import NO_LIMIT

SUSPECTED_AFTER: Final = 2
"""Connections that end in a row: a broker that is restarted ends one."""

DOUBTED_AFTER: Final = 600.0
"""Seconds after which the limit is forgotten, because the broker's may have been raised."""


@final
class FrameLimit:
    """The limit of one node. Sizes are in bytes of batches, times in seconds of the loop's clock."""

    def __init__(self) -> None:
        self.suspects: i64 = 0
        """Connections that ended in a row, each with a suspect, without an answer to a request as large."""
        self._ended_at: float = -math.inf
        self._before: i64 = NO_LIMIT
        """The smallest suspect of all but the last of them."""
        self._last: i64 = 0
        """The suspect of the last one: its largest request without an answer."""

    def cut_off(self, size: i64, sent_at: float, now: float) -> None:
        """The broker, or the network, ended the connection before it answered a request of ``size`` bytes."""
        if sent_at > self._ended_at:  # otherwise its connection has been counted
            if now - self._ended_at > DOUBTED_AFTER:
                self._forget()
            self._before = self._suspect() if self.suspects else NO_LIMIT
            self._last = 0
            self.suspects += 1
            self._ended_at = now
        if size > self._last:
            self._last = size

    def answered(self, size: i64) -> None:
        """A request of ``size`` bytes was answered."""
        if self.suspects and size >= self._suspect():
            self._forget()

    def most(self, now: float) -> i64:
        """The most bytes for a request, unless it has only one batch."""
        if self.suspects < SUSPECTED_AFTER or now - self._ended_at > DOUBTED_AFTER:
            return NO_LIMIT
        return self._suspect() // 2

    def largest_batch(self, now: float) -> i64:
        """The same for a request with one batch of several records; no limit while that may be wrong."""
        return self.most(now) if self.suspects > SUSPECTED_AFTER else NO_LIMIT

    def _suspect(self) -> i64:
        return self._last if self._last < self._before else self._before

    def _forget(self) -> None:
        self.suspects = 0
        self._before = NO_LIMIT
        self._last = 0
