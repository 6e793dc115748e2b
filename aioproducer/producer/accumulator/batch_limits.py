"""The largest batch that each topic is known to take: its ``max.message.bytes``, which no broker tells a producer.

A refused batch shows that the limit is below its size; an appended one, that the limit is not. A topic's batches grow
to the largest that it has taken, or to half of the smallest that it has refused. The limit may be raised later: so from
time to time a single batch may be twice as large as the refused one. Rules only: no asyncio, no clock.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from aioproducer.producer.batches.producer_batch import NO_LIMIT

DOUBTED_AFTER: Final = 600.0
"""Seconds after which a refusal is doubted, because the limit may have been raised: a batch tries it."""

TRIED_EVERY: Final = 10.0
"""Seconds until another batch may try. The first may have left too small to prove anything."""


@final
class Known:
    """What the answers about one topic have shown. Sizes are in bytes on the wire, with the batch's header."""

    def __init__(self) -> None:
        self.taken: i64 = 0
        """The largest batch that was appended."""
        self.refused: i64 = NO_LIMIT
        """The smallest that was too large."""
        self.doubted_from: float = 0.0
        """When the next batch may try whether the limit was raised."""


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
        known.doubted_from = now + DOUBTED_AFTER
        self.some_refused = True

    def refuses(self, topic: str, size: i64) -> bool:
        """Whether a batch of this size is known to be too large."""
        known = self._topics.get(topic)
        return known is not None and size >= known.refused

    def take_trial(self, topic: str, now: float) -> bool:
        """Whether the limit is doubted. The caller's new batch tries it, and no other for TRIED_EVERY seconds."""
        known = self._topics.get(topic)
        if known is None or known.refused == NO_LIMIT or now < known.doubted_from:
            return False
        known.doubted_from = now + TRIED_EVERY
        return True

    def most(self, topic: str, *, trial: bool = False) -> i64:
        """The most bytes for a batch; ``trial``: for one that tries whether the limit was raised."""
        known = self._topics.get(topic)
        if known is None or known.refused == NO_LIMIT:
            return NO_LIMIT
        if trial:
            return 2 * known.refused
        half = known.refused // 2
        return known.taken if known.taken > half else half
