"""Measures clients against their quotas on one node, and throttles them (KIP-13, KIP-124, KIP-599).

These are rules of state and ``now``; ``quota_managers.py`` applies them to requests. As in Kafka each node counts for
itself, and the clients of one entity share its quota.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from aioproducer.broker.quotas.client_quotas import CONTROLLER_MUTATION_RATE, ClientQuotas
from aioproducer.broker.quotas.rate_quota import QuotaWindow, RateQuotas
from aioproducer.broker.quotas.token_bucket import TokenBucket
from aioproducer.errors import ThrottlingQuotaExceededException

Client = tuple[str, str]
"""The user and the client id that a quota counts for; one of them may be empty."""

_MANY = 1000


class ClientQuotaManager:
    """Measures one kind of quota. ``most_ms`` is the longest throttle time; without it there is no limit."""

    def __init__(self, key: str, quotas: ClientQuotas, window: QuotaWindow, *, most_ms: float = math.inf) -> None:
        self._key = key
        self._quotas = quotas
        self._window = window
        self._most_ms = most_ms
        self._rates = RateQuotas[Client](window)

    def record(self, user: str, client_id: str, value: float, now: float) -> int:
        """Records what a client has used. Returns its throttle time in milliseconds; 0 for none."""
        limit = self._quotas.limit(self._key, user, client_id)
        if limit is None:
            return 0
        rate = self._rates.get((limit.user, limit.client_id), limit.bound, now)
        rate.record(value, now)
        return int(min(rate.throttle_ms(now), self._most_ms))

    def most_in_window(self, user: str, client_id: str) -> float:
        """The largest amount at once that is not always throttled; infinity for a client without a quota."""
        limit = self._quotas.limit(self._key, user, client_id)
        return math.inf if limit is None else limit.bound * (self._window.samples - 1) * self._window.seconds

    def throttled(self, user: str, client_id: str, throttle_ms: int, now: float) -> None:
        """Records that a client is throttled because of this quota."""
        limit = self._quotas.limit(self._key, user, client_id)
        if limit is not None:
            rate = self._rates.get((limit.user, limit.client_id), limit.bound, now)
            rate.throttle_times.record(throttle_ms, now)

    def usage(self, now: float) -> Iterator[tuple[Client, float, float]]:
        """Each client that has used its quota, with its rate and its average throttle time in milliseconds (or NaN)."""
        for client, rate in self._rates:
            yield client, rate.rate(now), rate.throttle_times.average(now)


class ControllerMutationQuotaManager:
    """Measures the partitions that clients create and delete (KIP-599)."""

    def __init__(self, quotas: ClientQuotas, window: QuotaWindow) -> None:
        self._quotas = quotas
        self._window = window
        self._buckets: dict[Client, TokenBucket] = {}
        self._many = _MANY

    def quota(self, user: str, client_id: str, now: float, *, strict: bool) -> ControllerMutationQuota:
        """The quota for one request. A strict quota refuses mutations once it is exhausted."""
        limit = self._quotas.limit(CONTROLLER_MUTATION_RATE, user, client_id)
        if limit is None:
            return ControllerMutationQuota(None, now, strict=strict)
        client = limit.user, limit.client_id
        bucket = self._buckets.get(client)
        if bucket is None:
            if len(self._buckets) >= self._many:
                self._buckets = {client: old for client, old in self._buckets.items() if not old.is_full(now)}
                self._many = max(_MANY, 2 * len(self._buckets))
            bucket = self._buckets[client] = TokenBucket(limit.bound, self._window, now)
        bucket.bound = limit.bound
        return ControllerMutationQuota(bucket, now, strict=strict)

    def tokens(self, now: float) -> Iterator[tuple[Client, float]]:
        for client, bucket in self._buckets.items():
            yield client, bucket.tokens(now)


class ControllerMutationQuota:
    """The quota of the partitions that one request may create or delete."""

    def __init__(self, bucket: TokenBucket | None, now: float, *, strict: bool) -> None:
        self._bucket = bucket
        self._now = now
        self._strict = strict
        self.throttle_ms = 0
        """How long the client is throttled for its mutations, refused ones included."""

    def record(self, mutations: int) -> None:
        """Records mutations before they are done. Raises :class:`ThrottlingQuotaExceededException`."""
        bucket = self._bucket
        if bucket is None:
            return
        if self._strict:
            self.throttle_ms = bucket.throttle_ms(self._now)
            if self.throttle_ms > 0:
                raise ThrottlingQuotaExceededException(
                    f"the quota {CONTROLLER_MUTATION_RATE} of {bucket.bound:g} partitions a second is exhausted: "
                    f"try again in {self.throttle_ms} ms"
                )
            bucket.take(mutations, self._now)
        else:
            bucket.take(mutations, self._now)
            self.throttle_ms = bucket.throttle_ms(self._now)
