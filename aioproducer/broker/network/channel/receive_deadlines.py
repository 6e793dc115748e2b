"""Closes connections whose requests arrive too slowly (``socket.request.receive.timeout.ms``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

PROGRESS = 256 * 1024
"""Bytes of a request that extend its deadline by ``socket.request.receive.timeout.ms``: large requests take longer."""


class SlowReceiver(Protocol):
    """A connection that has received part of a request."""

    @property
    def pending(self) -> int:
        """How many bytes of the incomplete request have arrived."""

    def close(self, reason: str) -> None:
        """Closes the connection and logs the reason."""


class ReceiveDeadlines:
    """The deadlines of one processor's connections, with one timer. A connection that misses its deadline is closed.

    A negative ``timeout_ms`` sets no deadlines.
    """

    def __init__(self, timeout_ms: int, now: Callable[[], float]) -> None:
        self._timeout_ms = timeout_ms
        self._now = now
        # By connection: the number of its frame, when its deadline was last set, and its pending bytes then. The
        # earliest deadline comes first.
        self._incomplete: dict[SlowReceiver, tuple[int, float, int]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def incomplete(self, channel: SlowReceiver, frame: int | None) -> None:
        """Sets a deadline for the rest of the frame with this number; None clears the connection's deadline."""
        waiting = self._incomplete.get(channel)
        if frame is None:
            if waiting is not None:
                del self._incomplete[channel]
        elif self._timeout_ms >= 0 and (waiting is None or waiting[0] != frame):
            self._incomplete.pop(channel, None)
            self._incomplete[channel] = frame, self._now(), channel.pending
            if self._timer is None:
                self._set_timer(self._timeout_ms / 1000)

    def cancel(self) -> None:
        """Stops the timer: the last connection has closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, delay: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay, self._close_incomplete)

    def _close_incomplete(self) -> None:
        self._timer = None
        timeout = self._timeout_ms / 1000
        now = self._now()
        for channel, (frame, since, pending) in tuple(self._incomplete.items()):
            left = since + timeout - now
            if left > 0:
                self._set_timer(left)
                return
            del self._incomplete[channel]
            if channel.pending - pending >= PROGRESS:
                self._incomplete[channel] = frame, now, channel.pending
                continue
            channel.close(
                f"its request is incomplete: fewer than {PROGRESS} bytes arrived in {self._timeout_ms} ms"
                f" (socket.request.receive.timeout.ms), {channel.pending} bytes in all"
            )
        if self._incomplete:
            self._set_timer(timeout)
