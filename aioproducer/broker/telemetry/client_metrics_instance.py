"""One client that asked for its subscription, or pushed (Kafka's ``ClientMetricsInstance``)."""

from __future__ import annotations

import math
from uuid import UUID

from aioproducer.errors.error_code import ErrorCode


class ClientMetricsInstance:
    """A client instance and its subscription. ``now`` is in seconds."""

    __slots__ = (
        "_got_at",
        "_pushed_at",
        "client_instance_id",
        "is_terminating",
        "last_error",
        "metrics",
        "push_interval_ms",
        "subscription_id",
        "version",
    )

    def __init__(
        self, client_instance_id: UUID, subscription_id: int, version: int, metrics: list[str], push_interval_ms: int
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.version = version
        """Of all subscriptions, when its own was made."""
        self.metrics = metrics
        self.push_interval_ms = push_interval_ms
        self.is_terminating = False
        """It has pushed for the last time."""
        self.last_error = ErrorCode.NONE
        self._got_at = self._pushed_at = -math.inf

    def may_get(self, now: float) -> bool:
        """Whether it may ask for its subscription: once in an interval in which it did not push."""
        if now - max(self._got_at, self._pushed_at) < self.push_interval_ms / 1000:
            return False
        self._got_at = now
        return True

    def may_push(self, now: float) -> bool:
        """Whether it may push: once in an interval, and at any time after it has asked for its subscription."""
        if self._got_at <= self._pushed_at and now - self._pushed_at < self.push_interval_ms / 1000:
            return False
        self._pushed_at = now
        return True
