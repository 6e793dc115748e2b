"""Reads and writes a listener's connections: from bytes to requests, from responses to bytes."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from aioproducer.broker.network.channel.channel_mute_state import ChannelMuteEvent
from aioproducer.broker.network.channel.idle_expiry import IdleExpiryManager
from aioproducer.broker.network.channel.kafka_channel import KafkaChannel
from aioproducer.broker.network.channel.memory_pool import MemoryPool
from aioproducer.broker.network.channel.receive_deadlines import ReceiveDeadlines
from aioproducer.broker.network.channel.unread_responses import UnreadResponses
from aioproducer.broker.network.channel_builder import ChannelBuilder
from aioproducer.broker.network.gate.connection_gate import Gate
from aioproducer.broker.network.gate.new_connections import CONNECTION_QUEUE_SIZE, NewConnections
from aioproducer.broker.network.idle_meter import IdleMeter
from aioproducer.broker.requests.fair_queue import FairQueue
from aioproducer.broker.requests.request import Request
from aioproducer.broker.requests.request_channel import RequestChannel
from aioproducer.broker.requests.response import (
    CloseConnectionResponse,
    EndThrottlingResponse,
    NoOpResponse,
    RequestEnd,
    SendResponse,
    StartThrottlingResponse,
)
from aioproducer.broker.requests.slices import Slices
from aioproducer.broker.security.listener_security import ListenerSecurity
from aioproducer.errors import SchemaException
from aioproducer.protocol.framing import decode_request_header
from aioproducer.timing.clock import Clock

log = logging.getLogger(__name__)

MOST_AT_ONCE, LEAST_AT_ONCE = 1024 * 1024, 64 * 1024
"""Bytes that the kernel gets at once: of one response that is being sent, and of each of many. What it does not accept,
it may accept later in one turn of the loop for many connections."""

_CLOSED_AT_ONCE = 64
"""Connections whose clients have left, in one slice: some 2 ms."""


class Processor:
    """One task, many connections. Kafka's class of this name.

    It works in rounds: new connections, then responses, then at most one request of each connection, then closed
    connections. A round begins when there is anything to do. Between rounds the event loop reads and writes the
    sockets.

    A request that cannot be read, or has an API or version that the node does not support, closes its connection, as
    in Kafka.
    """

    def __init__(
        self,
        id: int,
        name: str,
        listener: str,
        requests: RequestChannel,
        gate: Gate,
        clock: Clock,
        *,
        is_supported: Callable[[int, int], bool],
        next_connection_index: Callable[[], int],
        log_close: Callable[[str, str], object],
        security: ListenerSecurity,
        max_idle_ms: int,
        receive_timeout_ms: int,
        memory: MemoryPool,
        unread: UnreadResponses,
        slices: Slices,
    ) -> None:
        self.id = id
        self._name = name
        self._listener = listener
        self._requests = requests
        self._gate = gate
        self._now = clock.monotonic
        self._is_supported = is_supported
        self._next_connection_index = next_connection_index
        self._log_close = log_close
        self._security = security
        self._memory = memory
        self._unread = unread
        self._slices = slices
        self.new_connections = NewConnections(self._wakeup)
        self._builder = ChannelBuilder(
            f"{name}-register", listener, security, gate, clock, channel=self._channel, log_close=log_close
        )
        self._responses: deque[tuple[Request, RequestEnd]] = deque()
        self._receives: FairQueue[KafkaChannel] = FairQueue()
        self._lost: deque[KafkaChannel] = deque()
        self._ended: deque[KafkaChannel] = deque()
        self._sending: dict[KafkaChannel, tuple[Request, SendResponse]] = {}
        self._channels = IdleExpiryManager(max_idle_ms, clock.monotonic)
        self._receive_deadlines = ReceiveDeadlines(receive_timeout_ms, clock.monotonic)
        self._task: asyncio.Task[None] | None = None
        self._wake: asyncio.Future[None] | None = None
        self._flushed: asyncio.Future[None] | None = None
        self._all_closed: asyncio.Future[None] | None = None
        self._spare_buffers: list[bytearray] = []
        self._idle = IdleMeter(clock.monotonic())

    # its task

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    async def _run(self) -> None:
        while True:
            await self._sleep()
            try:
                self._configure_new_connections()
                await self._process_requests()
                self._process_disconnected()
            except Exception:
                log.exception("a round of %s failed", self._name)

    async def _sleep(self) -> None:
        if self.new_connections or self._responses or self._receives or self._lost:
            await asyncio.sleep(0)  # lets the loop poll the sockets
            return
        self._requests.rested()
        self._idle.rest(self._now())
        self._wake = asyncio.get_running_loop().create_future()
        await self._wake
        self._idle.work(self._now())

    def stop_reading(self) -> None:
        """Takes no more connections and reads no more; whole requests that were received are still handled."""
        self.new_connections.close()
        for channel in tuple(self._channels):
            channel.stop_reading()

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to do but to finish writing."""
        ended = self._task is None or self._task.done()
        return ended or not (self._responses or self._receives or self._lost)

    @property
    def is_answered(self) -> bool:
        """Whether every whole request has its response, written or being written."""
        return self.is_idle and all(
            channel.in_flight is None or channel in self._sending for channel in tuple(self._channels)
        )

    async def flush(self) -> None:
        """Returns when the kernel has accepted all responses."""
        while self._sending:
            self._flushed = asyncio.get_running_loop().create_future()
            await self._flushed

    def abort(self) -> None:
        """Drops every connection: nothing more is read, handled or written. :meth:`close` waits for the end."""
        self.new_connections.close()
        if self._task is not None:
            self._task.cancel()
        self._builder.abort()
        for channel in tuple(self._channels):
            channel.abort()

    async def close(self) -> None:
        """Drops every connection; returns when asyncio has released all of them."""
        self.abort()
        if self._task is not None:
            await asyncio.wait([self._task])
        while self.new_connections:
            self._builder.drop(self.new_connections.take())
        await self._builder.wait_closed()
        while self._channels:
            self._all_closed = asyncio.get_running_loop().create_future()
            await self._all_closed
        self._process_disconnected()

    def idle_share(self, now: float) -> float:
        """The share of the time, 0 to 1, that it was idle."""
        return self._idle.share(1, now)

    def _wakeup(self) -> None:
        _settle(self._wake)

    # new connections

    def _configure_new_connections(self) -> None:
        for _ in range(min(CONNECTION_QUEUE_SIZE, len(self.new_connections))):
            self._builder.build(self.new_connections.take())

    def _channel(self, address: str) -> KafkaChannel:
        return KafkaChannel(
            self,
            self._listener,
            address,
            self._next_connection_index(),
            security=self._security,
            memory=self._memory,
            deadlines=self._receive_deadlines,
            spare_buffers=self._spare_buffers,
            log_close=self._log_close,
        )

    # responses

    def enqueue_response(self, request: Request, response: RequestEnd) -> None:
        """Queues a handler's response for the next round."""
        self._responses.append((request, response))
        self._wakeup()

    def _process_new_responses(self) -> None:
        for _ in range(len(self._responses)):
            request, response = self._responses.popleft()
            channel = request.connection
            assert isinstance(channel, KafkaChannel)
            if isinstance(response, StartThrottlingResponse | EndThrottlingResponse):
                self._throttle(channel, response)
                continue
            request.response_dequeue_time = self._now()
            if isinstance(response, CloseConnectionResponse):
                self._requests.completed(request, response)
                if channel.is_open:
                    if response.parts:
                        channel.send(response.parts)
                    channel.close(response.reason)
            elif channel.in_flight is not request:
                self._requests.completed(request, response)  # its client is gone
            elif isinstance(response, SendResponse):
                channel.send(response.parts, self._piece)
                if channel.is_writing:
                    self._sending[channel] = request, response
                    self._unread.add(channel, sum(map(len, response.parts)))
                    if channel.may_send_on:
                        self.sends_on(channel)
                else:
                    self._complete(channel, request, response)
            elif isinstance(response, NoOpResponse):
                self._complete(channel, request, response)

    def _throttle(self, channel: KafkaChannel, response: StartThrottlingResponse | EndThrottlingResponse) -> None:
        if not channel.is_open:
            return
        if isinstance(response, StartThrottlingResponse):
            channel.throttle(ChannelMuteEvent.THROTTLE_STARTED)
        else:
            channel.throttle(ChannelMuteEvent.THROTTLE_ENDED)
            self.received(channel)

    @property
    def _piece(self) -> int:
        """How many bytes of a response the kernel gets at once."""
        return max(LEAST_AT_ONCE, MOST_AT_ONCE // (len(self._sending) + 1))

    def sends_on(self, channel: KafkaChannel) -> None:
        """The kernel accepts another piece of a response, which it gets in a slice."""
        self._slices.add(channel.address, partial(self._send_on, channel))

    def _send_on(self, channel: KafkaChannel, until: float) -> None:
        while channel.may_send_on:
            channel.send_on(self._piece)
            if self._slices.now() >= until:
                break
        if channel.may_send_on:
            self.sends_on(channel)
        elif channel.is_open and not channel.is_writing:
            self.sent(channel)

    def sent(self, channel: KafkaChannel) -> None:
        """The kernel has accepted the whole response."""
        sending = self._sending.pop(channel, None)
        if sending is not None:
            self._unread.remove(channel)
            self._complete(channel, *sending)
            _settle(self._flushed)

    def _complete(self, channel: KafkaChannel, request: Request, response: RequestEnd) -> None:
        channel.end()
        self._requests.completed(request, response)
        self.received(channel)

    # requests

    def received(self, channel: KafkaChannel) -> None:
        """Queues the channel for the next round if one of its requests may be taken. Addresses take turns."""
        if channel.can_receive and not channel.is_queued:
            channel.is_queued = True
            self._receives.append(channel.address, channel)
            self._wakeup()

    async def _process_requests(self) -> None:
        """Alternates between responses and requests until none are left, or ``num.io.threads`` were handled at once."""
        self._process_new_responses()
        left = self._requests.handlers
        while self._receives:
            left = await self._process_completed_receives(left)
            self._process_new_responses()
            if left <= 0:
                break

    async def _process_completed_receives(self, left: int) -> int:
        for _ in range(len(self._receives)):
            channel = self._receives.popleft()
            channel.is_queued = False
            if not channel.can_receive:
                continue
            request = self._request(channel, channel.take_receive())
            if request is not None:
                if left > 0 and self._requests.handle_now(request):
                    left -= 1
                elif not self._requests.offer(request):
                    await self._requests.send_request(request)
            if not channel.is_open:
                self.received(channel)  # its other whole requests are handled, too
        return left

    def _request(self, channel: KafkaChannel, frame: bytes | memoryview) -> Request | None:
        now = self._now()
        try:
            header, body_at = decode_request_header(frame)
        except SchemaException as error:
            channel.release(len(frame))
            channel.close(f"its request header cannot be read: {error}")
            return None
        if not self._is_supported(header.api_key, header.api_version):
            channel.release(len(frame))
            channel.close(
                f"it sent a request of API {header.api_key} version {header.api_version}, which is not supported"
            )
            return None
        request = Request(
            header,
            self._requests,
            channel,
            frame,
            body_at,
            processor=self.id,
            start_time=now,
            quotas=self._requests.quotas,
        )
        if channel.is_open:
            self._channels.update(channel, now)
            channel.begin(request)
        else:
            request.abandon()
        return request

    # connections

    @property
    def connection_count(self) -> int:
        return len(self._channels)

    def open_channels(self) -> Iterator[KafkaChannel]:
        """Its connections that are not closing, the least active first."""
        return (channel for channel in self._channels if not channel.is_closing)

    @property
    def queued_responses(self) -> int:
        """How many responses it has not begun to write."""
        return len(self._responses)

    def channel_opened(self, channel: KafkaChannel) -> None:
        """The channel is connected."""
        self._channels.update(channel, self._now())
        if self.new_connections.is_closed:
            channel.abort()

    def ended(self, channel: KafkaChannel) -> None:
        """The client of the channel sends nothing more: it is closed in a slice."""
        self._ended.append(channel)
        if len(self._ended) == 1:
            self._slices.add(self, self._close_ended)

    def _close_ended(self, until: float) -> None:
        # Not until its time is over: most of the work follows, when asyncio releases the connections.
        for _ in range(min(_CLOSED_AT_ONCE, len(self._ended))):
            self._ended.popleft().finish()
        if self._ended:
            self._slices.add(self, self._close_ended)

    def channel_lost(self, channel: KafkaChannel) -> None:
        """The connection has closed, and asyncio has released it."""
        self._channels.remove(channel)
        self._lost.append(channel)
        request, channel.in_flight = channel.in_flight, None
        if request is not None:
            request.abandon()
        if self._requests.quotas is not None:
            self._requests.quotas.lost(channel)
        self._gate.depart(self._listener, channel.address)
        if not self._channels:
            _settle(self._all_closed)
            self._receive_deadlines.cancel()
        self._wakeup()

    def _process_disconnected(self) -> None:
        for _ in range(len(self._lost)):
            channel = self._lost.popleft()
            sending = self._sending.pop(channel, None)
            if sending is not None:
                self._unread.remove(channel)
                self._requests.completed(*sending)
                _settle(self._flushed)
            # Kafka handles what a client sent before it left: records sent with acks=0 are not lost.
            self.received(channel)


def _settle(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
