"""A bound on the memory of responses that clients do not read."""

from __future__ import annotations

from aioproducer.broker.network.channel.kafka_channel import KafkaChannel

SIZE = 256 * 1024 * 1024
"""Bytes of all responses of a node that the kernel has not accepted completely."""


class UnreadResponses:
    """The connections of a node whose clients have not read their response yet, the one that began first at the front.

    If their responses take more than ``size``, connections are closed, those that have waited for longest first. One
    response may have any size, or its client could make no progress.
    """

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._total = 0
        self._of: dict[KafkaChannel, int] = {}

    def add(self, channel: KafkaChannel, size: int) -> None:
        """The kernel has accepted only a part of a response of ``size`` bytes."""
        self._of[channel] = size
        self._total += size
        while self._total > self._size and len(self._of) > 1:
            slowest = next(iter(self._of))
            waiting = self._total
            self.remove(slowest)
            slowest.close(f"it does not read its response: {waiting} bytes of responses are not read by their clients")

    def remove(self, channel: KafkaChannel) -> None:
        """The response is written, or the connection is closed."""
        self._total -= self._of.pop(channel, 0)
