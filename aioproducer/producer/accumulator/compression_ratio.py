"""The compression ratio of a topic, so that a batch is full when its compressed bytes are.

Rules only: no asyncio, no clock.
"""

from __future__ import annotations

from typing import Final

INITIAL: Final = 1.0
"""The first estimate: no compression."""

IMPROVING_STEP: Final = 0.005
"""The most by which the estimate falls after a batch that compressed better."""

DETERIORATING_STEP: Final = 0.05
"""The least by which it rises after one that compressed worse: too full is worse than not full."""

SAFETY: Final = 1.05
"""Kafka's COMPRESSION_RATE_ESTIMATION_FACTOR: the safety factor on the estimate."""

FULLEST: Final = 16
"""A batch takes at most this many times its size, however well it compresses: the event loop compresses it."""


class CompressionRatioEstimator:
    """By topic: bytes after compression per byte before. A producer has one codec, and so one instance."""

    def __init__(self) -> None:
        self._ratios: dict[str, float] = {}

    def ratio(self, topic: str) -> float:
        """The estimate: 0.25 is a quarter; more than 1 if compression makes data larger."""
        return self._ratios.get(topic, INITIAL)

    def observe(self, topic: str, observed: float) -> None:
        """A batch was compressed to ``observed`` of its size: follows a rise at once, a fall slowly."""
        estimated = self.ratio(topic)
        if observed > estimated:
            self._ratios[topic] = max(estimated + DETERIORATING_STEP, observed)
        elif observed < estimated:
            self._ratios[topic] = max(estimated - IMPROVING_STEP, observed)

    def reset(self, topic: str, observed: float) -> None:
        """A batch turned out too large: resets the estimate to 1, or to that batch's ratio if it was worse."""
        self._ratios[topic] = max(INITIAL, observed)

    def expected(self, topic: str) -> float:
        """Bytes to expect on the wire per byte written, on the safe side."""
        return self.ratio(topic) * SAFETY

    def limit(self, topic: str, batch_size: int) -> int:
        """Bytes of records, uncompressed, that fill a batch of ``batch_size`` bytes."""
        return max(1, int(min(batch_size / self.expected(topic), batch_size * FULLEST)))
