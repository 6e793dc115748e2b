"""Throttles the clients of a node that exceed their quotas (KIP-219).

A throttled client gets its answer at once, with its throttle time. It should send nothing during that time. Old or
unkind clients do, so the broker does not read the connection meanwhile. This is Kafka's ``QuotaFactory.QuotaManagers``,
together with what Kafka's request handlers do with it.
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
from aioproducer.broker.requests.request import Connection, Request
from aioproducer.configs.config_def import INT_MAX
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.codec import encode
from aioproducer.protocol.messages.fetch import FetchResponse
from aioproducer.protocol.schema import Response
from aioproducer.timing.clock import Clock

_UNTHROTTLED = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
"""APIs whose responses have no field for the throttle time."""

_MUTATIONS = (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS)
"""APIs whose handlers record their mutations, and set the throttle time in their answers."""


class QuotaManagers:
    """The quota usage of the clients of one node, and the clients that are throttled."""

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
        self._throttled: dict[Connection, asyncio.TimerHandle] = {}

    def mutations(self, request: Request, *, strict_from: int) -> ControllerMutationQuota:
        """The quota of what this request may create and delete. Versions from ``strict_from`` on can be refused."""
        header = request.header
        return self.controller_mutation.quota(
            request.connection.user, header.client_id or "", self._now(), strict=header.api_version >= strict_from
        )

    def most_to_fetch(self, request: Request) -> int:
        """The largest number of bytes in one response that is not always throttled."""
        return int(min(self.fetch.most_in_window(request.connection.user, request.header.client_id or ""), INT_MAX))

    def answer(self, request: Request, response: Response) -> Response:
        """Records a request that is about to be answered. Returns the response that the client gets."""
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
                # The client gets the records when its throttle time is over, so this response used none.
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
        """Records a produce request with acks=0. It has no response, so only muting the connection throttles the
        client."""
        if self._quotas:
            user, client_id, now = request.connection.user, request.header.client_id or "", self._now()
            throttle_ms = self.produce.record(user, client_id, request.size, now)
            if throttle_ms > 0:
                self.produce.throttled(user, client_id, throttle_ms, now)
                self._mute(request, throttle_ms)

    def lost(self, connection: Connection) -> None:
        """Ends the throttling of a client that has disconnected: its time may be days."""
        timer = self._throttled.pop(connection, None)
        if timer is not None:
            timer.cancel()

    @property
    def throttled(self) -> int:
        """How many connections are not read because their clients are throttled."""
        return len(self._throttled)

    def close(self) -> None:
        """Ends all throttling, because the node has stopped."""
        for timer in self._throttled.values():
            timer.cancel()
        self._throttled.clear()

    def _mute(self, request: Request, throttle_ms: int) -> None:
        request.throttle_time_ms = throttle_ms
        if request.abandoned:
            return
        request.start_throttling()
        timer = asyncio.get_running_loop().call_later(throttle_ms / 1000, self._unmute, request)
        self._throttled[request.connection] = timer

    def _unmute(self, request: Request) -> None:
        del self._throttled[request.connection]
        request.end_throttling()
