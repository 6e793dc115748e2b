"""The largest batch that each topic is known to take: its ``max.message.bytes``, which no broker tells a producer.

A refused batch shows that the limit is below its size; an appended one, that the limit is not. A topic's batches grow
to the largest that it has taken, or to half of the smallest that it has refused. Rules only: no asyncio, no clock.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from aioproducer.producer.batches.producer_batch import NO_LIMIT

DOUBTED_AFTER: Final = 600.0
"""Seconds after which a refusal is forgotten, because the limit may have been raised; then one more batch is split."""


@final
class Known:
    """What the answers about one topic have shown. Sizes are in bytes on the wire, with the batch's header."""

    def __init__(self) -> None:
        self.taken: i64 = 0
        """The largest batch that was appended."""
        self.refused: i64 = NO_LIMIT
        """The smallest that was too large."""
        self.refused_at: float = 0.0


@final
class BatchLimits:
    """By topic. Times are the loop's, in seconds."""

    def __init__(self) -> None:
        self.some_refused = False
        """A topic has refused a batch; until then, ``most`` is NO_LIMIT for all."""
        self._topics: dict[str, Known] = {}

    def known(self, topic: str) -> Known | None:
        """What the answers about a topic have shown; None before the first."""
        return self._topics.get(topic)

    def taken(self, topic: str, size: i64) -> None:
        """A batch of this size was appended."""
        known = self._topics.get(topic)
        if known is None:
            known = self._topics[topic] = Known()
        if size > known.taken:
            known.taken = size
            if size >= known.refused:
                known.refused = NO_LIMIT  # the limit was raised

    def refused(self, topic: str, size: i64, now: float) -> None:
        """A batch of this size was too large."""
        known = self._topics.get(topic)
        if known is None:
            known = self._topics[topic] = Known()
        if size <= known.taken:
            known.taken = 0  # the limit was lowered
        if size < known.refused:
            known.refused = size
        known.refused_at = now
        self.some_refused = True

    def refuses(self, topic: str, size: i64) -> bool:
        """Whether a batch of this size is known to be too large."""
        known = self._topics.get(topic)
        return known is not None and size >= known.refused

    def most(self, topic: str, now: float) -> i64:
        """The most bytes for a batch."""
        known = self._topics.get(topic)
        if known is None or known.refused == NO_LIMIT:
            return NO_LIMIT
        if now - known.refused_at > DOUBTED_AFTER:
            known.refused = NO_LIMIT
            return NO_LIMIT
        half = known.refused // 2
        return known.taken if known.taken > half else half
