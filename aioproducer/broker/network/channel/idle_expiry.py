"""Closes connections that are idle for too long (``connections.max.idle.ms``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from aioproducer.broker.network.channel.kafka_channel import KafkaChannel


class IdleExpiryManager:
    """The connections of one processor, the least active first, with one timer. Kafka's class of this name.

    A connection that is idle for ``max_idle_ms`` is dropped; none is if that is negative.
    """

    def __init__(self, max_idle_ms: int, now: Callable[[], float]) -> None:
        self._max_idle_ms = max_idle_ms
        self._now = now
        # In the order of their last activity: the timer checks only the front.
        self._channels: dict[KafkaChannel, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._channels)

    def __iter__(self) -> Iterator[KafkaChannel]:
        return iter(self._channels)

    def update(self, channel: KafkaChannel, now: float) -> None:
        """Adds a connection, or notes that it was active."""
        self._channels.pop(channel, None)
        self._channels[channel] = None
        channel.last_active = now
        if self._timer is None and self._max_idle_ms >= 0:
            self._set_timer(self._max_idle_ms / 1000)

    def remove(self, channel: KafkaChannel) -> None:
        """Removes a closed connection."""
        self._channels.pop(channel, None)
        if not self._channels and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, delay: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._now()
        for channel in tuple(self._channels):
            left = channel.last_active + self._max_idle_ms / 1000 - now
            if left > 0:
                self._set_timer(left)
                return
            channel.abort()
