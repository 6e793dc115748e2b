"""Throttles the clients of a node that use more than their quotas (KIP-219).

A throttled client is answered at once, with the time for which it is throttled. It should send nothing meanwhile; as
old or unkind clients do, its connection is not read until then. Kafka's ``QuotaFactory.QuotaManagers``, and what its
request handlers do with them.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.quotas.client_quota_manager import (
    ClientQuotaManager,
    ControllerMutationQuota,
    ControllerMutationQuotaManager,
)
from aioproducer.broker.quotas.client_quotas import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientQuotas,
)
from aioproducer.broker.quotas.rate_quota import QuotaWindow
from aioproducer.broker.requests.request import Request
from aioproducer.configs.config_def import INT_MAX
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.codec import encode
from aioproducer.protocol.messages.fetch import FetchResponse
from aioproducer.protocol.schema import Response
from aioproducer.timing.clock import Clock

_UNTHROTTLED = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
"""Their responses have no field for it."""

_MUTATIONS = (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS)
"""Their handlers ask for what they do, and say in their answers what that costs."""


class QuotaManagers:
    """What the clients of one node use up, and who is throttled."""

    def __init__(self, quotas: ClientQuotas, config: BrokerConfig, clock: Clock) -> None:
        self._quotas = quotas
        self._now = clock.monotonic
        window = QuotaWindow(config.quota_window_size_seconds, config.quota_window_num)
        self.produce = ClientQuotaManager(PRODUCER_BYTE_RATE, quotas, window)
        self.fetch = ClientQuotaManager(CONSUMER_BYTE_RATE, quotas, window)
        self.request = ClientQuotaManager(REQUEST_PERCENTAGE, quotas, window, most_ms=window.milliseconds)
        self.controller_mutation = ControllerMutationQuotaManager(
            quotas, QuotaWindow(config.controller_quota_window_size_seconds, config.controller_quota_window_num)
        )
        self._throttled: dict[Request, asyncio.TimerHandle] = {}

    def mutations(self, request: Request, *, strict_from: int) -> ControllerMutationQuota:
        """What this request may create and delete. Versions from ``strict_from`` on know how to be refused."""
        header = request.header
        return self.controller_mutation.quota(
            request.connection.user, header.client_id or "", self._now(), strict=header.api_version >= strict_from
        )

    def most_to_fetch(self, request: Request) -> int:
        """More bytes than that in one response are always throttled."""
        return int(min(self.fetch.most_in_window(request.connection.user, request.header.client_id or ""), INT_MAX))

    def answer(self, request: Request, response: Response) -> Response:
        """A request is about to be answered. Returns what the client gets instead of ``response``."""
        if not self._quotas or request.header.api_key in _UNTHROTTLED:
            return response
        user, client_id, now = request.connection.user, request.header.client_id or "", self._now()
        if request.api_local_complete_time < 0:
            request.api_local_complete_time = now
        busy = max(request.api_local_complete_time - request.request_dequeue_time, 0.0)
        request_ms = self.request.record(user, client_id, 100 * busy, now)
        bytes_ms, fetched = 0, 0
        if request.header.api_key == ApiKey.PRODUCE:
            bytes_ms = self.produce.record(user, client_id, request.size, now)
        elif isinstance(response, FetchResponse) and self._quotas.has(CONSUMER_BYTE_RATE):
            fetched = sum(len(part) for part in encode(response, request.header.api_version))
            bytes_ms = self.fetch.record(user, client_id, fetched, now)
        throttled: Any = response
        mutations_ms = throttled.throttle_time_ms if request.header.api_key in _MUTATIONS else 0
        throttle_ms = max(bytes_ms, request_ms, mutations_ms)
        if throttle_ms > 0:
            if isinstance(response, FetchResponse):
                # It gets its records when its time is over, so none were used.
                self.fetch.record(user, client_id, -fetched, now)
                request.throttled()
                throttled = response = FetchResponse(error_code=response.error_code, session_id=response.session_id)
            if throttle_ms == bytes_ms:
                (self.fetch if fetched else self.produce).throttled(user, client_id, throttle_ms, now)
            elif throttle_ms == request_ms:
                self.request.throttled(user, client_id, throttle_ms, now)
            self._mute(request, throttle_ms)
            throttled.throttle_time_ms = max(throttled.throttle_time_ms, throttle_ms)
        return response

    def no_answer(self, request: Request) -> None:
        """A produce request with acks=0 ends. It has no response, so only the muted connection throttles its client."""
        if self._quotas:
            user, client_id, now = request.connection.user, request.header.client_id or "", self._now()
            throttle_ms = self.produce.record(user, client_id, request.size, now)
            if throttle_ms > 0:
                self.produce.throttled(user, client_id, throttle_ms, now)
                self._mute(request, throttle_ms)

    @property
    def throttled(self) -> int:
        """How many connections are not read from as their clients are throttled."""
        return len(self._throttled)

    def close(self) -> None:
        """Ends all throttling: the node has stopped."""
        for timer in self._throttled.values():
            timer.cancel()
        self._throttled.clear()

    def _mute(self, request: Request, throttle_ms: int) -> None:
        request.throttle_time_ms = throttle_ms
        request.start_throttling()
        self._throttled[request] = asyncio.get_running_loop().call_later(throttle_ms / 1000, self._unmute, request)

    def _unmute(self, request: Request) -> None:
        del self._throttled[request]
        request.end_throttling()
