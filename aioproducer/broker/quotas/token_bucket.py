"""A quota with credit for bursts, which refills at a steady rate (Kafka's ``TokenBucket``)."""

from __future__ import annotations

import math

from aioproducer.broker.quotas.rate_quota import QuotaWindow


class TokenBucket:
    """Full at first: it holds the tokens of all windows. ``now`` is in seconds and never decreases."""

    __slots__ = ("_at", "_tokens", "_window", "bound")

    def __init__(self, bound: float, window: QuotaWindow, now: float) -> None:
        self._window = window
        self.bound = bound
        """Tokens that are added per second."""
        self._at = now
        self._tokens = self._burst

    def tokens(self, now: float) -> float:
        """The tokens that are left; below 0 the quota is exhausted."""
        self._tokens = min(self._burst, self._tokens + self.bound * (now - self._at))
        self._at = now
        return self._tokens

    def take(self, tokens: float, now: float) -> None:
        """Takes tokens, even more than are left."""
        self._tokens = self.tokens(now) - tokens

    def throttle_ms(self, now: float) -> int:
        """Milliseconds until the tokens are back at 0; 0 if none are owed."""
        tokens = self.tokens(now)
        return math.floor(-tokens / self.bound * 1000 + 0.5) if tokens < 0 else 0

    def is_full(self, now: float) -> bool:
        return self.tokens(now) >= self._burst

    @property
    def _burst(self) -> float:
        return self.bound * self._window.samples * self._window.seconds
