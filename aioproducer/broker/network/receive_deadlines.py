"""Requests that do not become whole (``socket.request.receive.timeout.ms``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aioproducer.broker.network.kafka_channel import KafkaChannel

PROGRESS = 256 * 1024
"""Bytes of a request that are worth another ``socket.request.receive.timeout.ms``: some are large, and lines slow."""


class ReceiveDeadlines:
    """Those of one processor's connections, with one timer. Who misses its deadline is given to ``close``, with the
    reason. A negative ``timeout_ms`` is none.
    """

    def __init__(self, timeout_ms: int, now: Callable[[], float], close: Callable[[KafkaChannel, str], object]) -> None:
        self._timeout_ms = timeout_ms
        self._now = now
        self._close = close
        # Those that wait for the rest of a request: which one, since when, and what they had then. Longest first.
        self._incomplete: dict[KafkaChannel, tuple[int, float, int]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def incomplete(self, channel: KafkaChannel, frame: int | None) -> None:
        """The channel waits for the rest of its frame of this number, or for nothing."""
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
        """There is no connection any more."""
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
            self._close(
                channel,
                f"its request is not whole, and less than {PROGRESS} bytes of it have come in"
                f" {self._timeout_ms} ms (socket.request.receive.timeout.ms); it has {channel.pending}",
            )
        if self._incomplete:
            self._set_timer(timeout)
