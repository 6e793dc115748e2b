"""Decides when to renew a token: Kafka's rule (``ExpiringCredentialRefreshingLogin.refreshMs``), with its four
configs."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class RefreshWindow:
    """``sasl.login.refresh.*``; times are in seconds."""

    factor: float = 0.8
    jitter: float = 0.05
    min_period: float = 60
    buffer: float = 300

    def refresh_at(self, now: float, expires_at: float, random: Random) -> float:
        """When to renew a token that was got ``now``.

        After a part of its lifetime, but ``buffer`` before its end and not within ``min_period``. A token too
        short-lived for both is renewed after that part of its lifetime.
        """
        part = self.factor + self.jitter * random.random()
        proposed = now + (expires_at - now) * part
        if now + self.min_period + self.buffer > expires_at:
            return proposed
        return max(min(proposed, expires_at - self.buffer), now + self.min_period)
