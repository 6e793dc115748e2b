"""The network half of a node: its client connections, from bytes to requests and from responses to bytes."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from aioproducer.broker.kafka_channel import KafkaChannel
from aioproducer.broker.request import Request
from aioproducer.clock import Clock
from aioproducer.errors import SchemaException
from aioproducer.protocol.framing import decode_request_header
from aioproducer.protocol.headers import RequestHeader

log = logging.getLogger(__name__)


class RequestHandler(Protocol):
    """What a processor hands requests to."""

    def is_supported(self, api_key: int, api_version: int) -> bool:
        """Whether requests of this API and version may be handed over. Others cost the client its connection."""

    def handle(self, request: Request, frame: bytes, body_at: int) -> None:
        """Handles the request whose body begins at ``frame[body_at]``. It may end later.

        Raises :class:`SchemaException` for a body that cannot be read.
        """


class Processor:
    """The open connections of one node (Kafka has one such reactor per network thread; asyncio's loop is ours).

    A request that cannot be read, or is of an API or version that the node does not have, closes its connection, as in
    Kafka. The log has one line for each kind of such event and node, however often a client comes back.
    """

    def __init__(self, handler: RequestHandler, clock: Clock, *, max_receive_size: int, max_idle_ms: int) -> None:
        self._handler = handler
        self._clock = clock
        self._max_receive_size = max_receive_size
        self._max_idle_ms = max_idle_ms
        # Oldest activity first: the idle timer looks at the front only.
        self._channels: dict[KafkaChannel, None] = {}
        self._idle_timer: asyncio.TimerHandle | None = None
        self._all_closed = asyncio.Event()
        self._all_closed.set()
        self._closing = False
        self._logged: set[str] = set()

    def open_channel(self) -> KafkaChannel:
        """The protocol of a connection that is being accepted."""
        return KafkaChannel(self, self._max_receive_size)

    async def close(self) -> None:
        """Drops every connection; returns when asyncio has let go of all of them."""
        self._closing = True
        for channel in tuple(self._channels):
            channel.abort()
        await self._all_closed.wait()

    @property
    def connection_count(self) -> int:
        return len(self._channels)

    # what channels say

    def channel_opened(self, channel: KafkaChannel) -> None:
        self._all_closed.clear()
        self._touch(channel)
        if self._closing:
            channel.abort()
            return
        if self._idle_timer is None and self._max_idle_ms >= 0:
            self._idle_timer = asyncio.get_running_loop().call_later(self._max_idle_ms / 1000, self._close_idle)

    def channel_closed(self, channel: KafkaChannel) -> None:
        self._channels.pop(channel, None)
        if not self._channels:
            self._all_closed.set()
            if self._idle_timer is not None:
                self._idle_timer.cancel()
                self._idle_timer = None

    def receive(self, channel: KafkaChannel, frame: bytes) -> None:
        self._touch(channel)
        try:
            header, body_at = decode_request_header(frame)
        except SchemaException as error:
            channel.close(f"its request header cannot be read: {error}")
            return
        if not self._handler.is_supported(header.api_key, header.api_version):
            channel.close(
                f"it sent a request of API {header.api_key} version {header.api_version}, which is not supported"
            )
            return
        request = Request(header, channel)
        channel.begin(request)
        try:
            self._handler.handle(request, frame, body_at)
        except SchemaException as error:
            channel.close(f"its request cannot be read: {error}")
        except Exception:
            log.exception("closing the connection from %s: %s failed", channel.peer, _describe(header))
            channel.abort()

    def log_close(self, channel: KafkaChannel, reason: str) -> None:
        if reason not in self._logged and len(self._logged) < 1000:
            self._logged.add(reason)
            log.warning("closing the connection from %s: %s", channel.peer, reason)

    # idle connections (connections.max.idle.ms)

    def _touch(self, channel: KafkaChannel) -> None:
        self._channels.pop(channel, None)
        self._channels[channel] = None
        channel.last_active = self._clock.monotonic()

    def _close_idle(self) -> None:
        max_idle = self._max_idle_ms / 1000
        now = self._clock.monotonic()
        for channel in tuple(self._channels):
            left = channel.last_active + max_idle - now
            if left > 0:
                self._idle_timer = asyncio.get_running_loop().call_later(left, self._close_idle)
                return
            channel.abort()
        self._idle_timer = None


def _describe(header: RequestHeader) -> str:
    return f"a request of API {header.api_key} version {header.api_version} from client {header.client_id!r}"
