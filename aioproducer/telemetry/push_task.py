"""The task that asks for subscriptions and pushes metrics (Kafka's ``TelemetrySender``)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from dataclasses import dataclass
from random import Random
from typing import Any, Final
from uuid import UUID

from aioproducer.errors import AuthenticationException, IllegalArgumentException, KafkaError, TimeoutException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics.metric_name import Tags
from aioproducer.net.broker_link import BrokerLink
from aioproducer.net.client import KafkaClient
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from aioproducer.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from aioproducer.records.compression import CompressionType, compress, millisecond_of_work
from aioproducer.tasks.supervisor import Supervisor
from aioproducer.telemetry.client_telemetry import ClientTelemetry, Push
from aioproducer.telemetry.metric_points import MetricPoints, Point
from aioproducer.telemetry.otlp_payload import OtlpPayload, otlp_library
from aioproducer.telemetry.telemetry_state import TelemetryState
from aioproducer.timing.clock import Clock
from aioproducer.timing.time_slice import TimeSlice

log = logging.getLogger(__name__)

LAST_PUSH: Final = 0.5
"""Seconds that the last push may delay the end of a client. A live broker answers sooner."""

NOT_INSTALLED: Final = (
    "a broker subscribes to metrics of this client, and OpenTelemetry's protocol is not installed: "
    "pip install 'aioproducer[telemetry]', or set enable.metrics.push=false"
)


@dataclass(frozen=True, slots=True)
class Source:
    """What is pushed. ``resource`` are the labels of all points; no secret may be among them."""

    points: MetricPoints
    resource: Tags
    clock: Clock


class PushTask:
    """Waits until requests are due, and sends them to a broker that is connected anyway, the same if possible.

    Each failure is logged, and does not affect the client.
    """

    def __init__(
        self, client: KafkaClient, supervisor: Supervisor, random: Random, source: Source, request_timeout: float
    ) -> None:
        self._client = client
        self._supervisor = supervisor
        self._rules = ClientTelemetry(random)
        self._source = source
        self._request_timeout = request_timeout
        self._loop = asyncio.get_running_loop()
        self._node_id: int | None = None
        """The broker that was asked last."""
        self._is_wanted = False
        """A caller waits for the client instance id."""
        self._known = asyncio.Event()
        """It is known, or never will be."""
        self._library: Any = None
        """OpenTelemetry's messages, once metrics are wanted."""
        self._left_out = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def state(self) -> TelemetryState:
        return self._rules.state

    def start(self) -> None:
        self._task = self._supervisor.spawn(self._run(), "aioproducer telemetry")

    async def client_instance_id(self, timeout: float) -> UUID:
        """The id that the cluster has given the client; TimeoutException if it is unknown after ``timeout`` seconds."""
        if not timeout >= 0:  # or NaN
            raise IllegalArgumentException(f"the time-out is {timeout}; it must be 0 or more seconds")
        if self._rules.client_instance_id is None:
            self._is_wanted = True
            self._client.changes.announce()
            try:
                async with asyncio.timeout(None if timeout == math.inf else timeout):
                    await self._known.wait()
            except TimeoutError:
                pass
        found = self._rules.client_instance_id
        if found is None:
            raise TimeoutException(f"the client instance id is not known after {timeout:g} s: {self._rules.why_none}")
        return found

    async def close(self) -> None:
        """Pushes a last time, if metrics are wanted and a broker is connected. Takes at most ``LAST_PUSH`` seconds."""
        if self._task is not None and not self._task.done():
            self._supervisor.cancel(self._task)
            await asyncio.wait([self._task])
        try:
            link = self._connected()
            if self._rules.close() and link is not None and self._library is not None:
                async with asyncio.timeout(LAST_PUSH):
                    await self._push(link)
        except TimeoutError:
            log.debug("no broker answered the last push of metrics within %g s", LAST_PUSH)
        except KafkaError as error:
            log.debug("the last push of metrics failed: %s", error)
        except Exception:
            log.exception("unforeseen error at the last push of metrics")
        finally:
            self._rules.end()
            self._rules.why_none = "the client is closed"
            self._known.set()

    async def _run(self) -> None:
        try:
            while self.state is not TelemetryState.TERMINATED:
                await self._until_due()
                await self._request()
                if self._rules.client_instance_id is not None:
                    self._is_wanted = False
                    self._known.set()
        except Exception:
            log.exception("unforeseen error: metrics are not pushed to the brokers any more")
            self._rules.end()
        self._known.set()

    async def _until_due(self) -> None:
        """Returns when a request is due, or a caller waits for its answer."""
        if self._rules.next_at == -math.inf:
            return
        await asyncio.sleep(self._rules.next_at - self._loop.time())

    async def _request(self) -> None:
        try:
            link = await self._link()
            async with asyncio.timeout(self._request_timeout):
                if self.state is TelemetryState.SUBSCRIPTION_NEEDED:
                    await self._ask(link)
                else:
                    await self._push(link)
        except TimeoutError:
            self._failed(TimeoutException(f"no answer within request.timeout.ms; {self._client.unreachable()}"))
        except KafkaError as error:
            self._failed(error)

    def _failed(self, error: KafkaError) -> None:
        self._node_id = None
        self._rules.failed(error, self._loop.time())

    async def _link(self) -> BrokerLink:
        """A connected broker. Only for a push, or for a caller that waits, a connection is made."""
        while (link := self._connected()) is None:
            subscription = self._rules.subscription
            if self._is_wanted or (subscription is not None and not subscription.is_empty):
                async with asyncio.timeout(self._request_timeout):
                    return await self._client.any_ready()
            with contextlib.suppress(AuthenticationException):  # the client reports it
                await self._client.changes.next()
        self._node_id = link.node_id
        return link

    def _connected(self) -> BrokerLink | None:
        """A broker with these APIs: the one that was asked last, or else the one with the fewest requests; None if
        none is connected.

        Bootstrap servers are left alone: their connections end as soon as nothing needs them.
        """
        ready = [link for link in self._client.links.values() if link.ready() and link.node_id >= 0]
        return min(ready, key=self._rank, default=None)

    def _rank(self, link: BrokerLink) -> tuple[bool, bool, tuple[bool, int]]:
        lacks_api = link.api_versions.newest(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS) < 0
        return lacks_api, link.node_id != self._node_id, link.load()

    # Requests

    async def _ask(self, link: BrokerLink) -> None:
        answer = await link.call(self._rules.ask(), GetTelemetrySubscriptionsResponse)
        self._rules.answered(answer, self._loop.time())
        if self.state is TelemetryState.PUSH_NEEDED and self._library is None:
            try:
                self._library = await self._loop.run_in_executor(None, otlp_library)
            except ImportError:
                self._rules.cannot_push(NOT_INSTALLED)

    async def _push(self, link: BrokerLink) -> None:
        push = self._rules.push()
        data, points = await self._payload(push)
        metrics = await self._compressed(push.codec, data)
        answering = link.call(
            PushTelemetryRequest(
                push.subscription.client_instance_id,
                push.subscription.subscription_id,
                push.terminating,
                push.codec,
                metrics,
            ),
            PushTelemetryResponse,
        )
        self._source.points.pushed(points)
        answer = await answering
        if answer.error_code != ErrorCode.NONE:
            self._source.points.refused()
        self._rules.pushed(push, len(metrics), answer.error_code, self._loop.time())

    async def _payload(self, push: Push) -> tuple[bytes, list[Point]]:
        """The metrics that are wanted, as far as there is room, with turns of the loop in between."""
        delta = push.subscription.delta_temporality
        payload = OtlpPayload(self._library, self._source.resource, push.max_bytes, delta=delta)
        taken: list[Point] = []
        left_out = 0
        time_slice = TimeSlice(self._loop)
        for point in self._source.points.points(push.subscription, self._loop.time(), self._source.clock.time_ms()):
            if payload.add(point):
                taken.append(point)
            else:
                left_out += 1
            if time_slice.over():
                await asyncio.sleep(0)
                time_slice.begin()
        if left_out > self._left_out:
            log.info(
                "%d of %d metrics are not pushed: the brokers take %d bytes (telemetry.max.bytes)",
                left_out,
                left_out + len(taken),
                push.max_bytes,
            )
        self._left_out = max(left_out, self._left_out)
        return payload.encode(), taken

    async def _compressed(self, codec: CompressionType, data: bytes) -> bytes:
        if codec is CompressionType.NONE or len(data) < millisecond_of_work(codec, None):
            return compress(codec, data)
        return await self._loop.run_in_executor(None, compress, codec, data)
