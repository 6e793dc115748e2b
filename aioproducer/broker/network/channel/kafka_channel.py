"""One client connection."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from aioproducer.broker.network.channel.channel_mute_state import ChannelMuteEvent, ChannelMuteState, next_mute_state
from aioproducer.broker.network.channel.memory_pool import MemoryPool
from aioproducer.broker.network.channel.receive_deadlines import ReceiveDeadlines
from aioproducer.broker.requests.request import ClientSoftware, Request
from aioproducer.broker.security.listener_security import ListenerSecurity
from aioproducer.broker.security.sasl_server_authenticator import ANONYMOUS
from aioproducer.protocol.frame_reader import FrameReader
from aioproducer.protocol.primitives import Buffer
from aioproducer.security.tls.peer import certified_name

_LITTLE = 16 * 1024
"""Bytes of a request that are read even without free memory, so that large requests do not block small ones."""


class ChannelOwner(Protocol):
    """The events of a channel, for its processor. Only asyncio's callbacks raise them, never a call of the owner."""

    def channel_opened(self, channel: KafkaChannel) -> None:
        """The channel is connected."""

    def received(self, channel: KafkaChannel) -> None:
        """The channel has received at least one whole request."""

    def sent(self, channel: KafkaChannel) -> None:
        """The kernel has accepted the whole response."""

    def sends_on(self, channel: KafkaChannel) -> None:
        """The kernel accepts another piece of the response."""

    def ended(self, channel: KafkaChannel) -> None:
        """The client sends nothing more; the channel is to be closed with :meth:`KafkaChannel.finish`."""

    def channel_lost(self, channel: KafkaChannel) -> None:
        """The connection has closed, and asyncio has released it."""


class KafkaChannel(asyncio.BufferedProtocol):
    """Splits the client's bytes into frames, and keeps the frames until its owner takes them, one at a time.

    From a request until the kernel has accepted its whole response, the channel is *muted*: no further request is
    taken. That keeps a client's requests in order. Meanwhile one whole request may wait; beyond that the socket is not
    read, which limits the cost of a client that never reads.

    A channel whose client has disconnected keeps the whole requests that it received: they are handled, too.
    """

    __slots__ = (  # a broker has thousands of idle ones
        "__weakref__",  # the client metrics of a connection end with it
        "_certified",
        "_deadlines",
        "_frame_count",
        "_frames",
        "_index",
        "_is_incomplete",
        "_is_paused",
        "_is_unauthenticated",
        "_log_close",
        "_memory",
        "_out_of_memory",
        "_owner",
        "_reading",
        "_received",
        "_reserved",
        "_security",
        "_stopped",
        "_transport",
        "_unsent",
        "address",
        "authenticator",
        "id",
        "in_flight",
        "is_queued",
        "last_active",
        "listener",
        "mute_state",
        "security_protocol",
        "software",
        "was_opened",
    )

    def __init__(
        self,
        owner: ChannelOwner,
        listener: str,
        address: str,
        index: int,
        *,
        security: ListenerSecurity,
        memory: MemoryPool,
        deadlines: ReceiveDeadlines,
        spare_buffers: list[bytearray],
        log_close: Callable[[str, str], object],
    ) -> None:
        """``spare_buffers`` belong to all channels of the owner; see :class:`FrameReader`. ``log_close`` gets the
        channel's id and the reason why this side closes it."""
        self._owner = owner
        self._frames = FrameReader(security.max_receive_size, spare_buffers, gathers=True)
        self._memory = memory
        self._deadlines = deadlines
        self._log_close = log_close
        self._stopped = False
        self._frame_count = 0
        self._is_incomplete = False  # waits for the rest of a request
        self._reserved = 0  # bytes of the pool, for an incomplete frame
        self._out_of_memory = False
        self._received: list[bytes | memoryview] = []  # the last one is the next
        self._unsent: deque[Buffer] | None = None  # the rest of a response
        self._is_paused = False  # the kernel accepts nothing at the moment
        self._index = index
        self._reading = True
        self._transport: asyncio.Transport | None = None
        self.was_opened = False
        self.listener = listener
        self.address = address
        self._security = security
        self.security_protocol = security.protocol
        self.authenticator = security.authenticator()
        self._certified = ""  # the name in the client's certificate
        self._is_unauthenticated = self.authenticator is not None
        self.software: ClientSoftware | None = None
        self.id = f"-{index}"
        self.mute_state = ChannelMuteState.NOT_MUTED
        self.in_flight: Request | None = None
        self.is_queued = False
        """The owner will take a request of this channel in its next round."""
        self.last_active = 0.0

    # called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.was_opened = True
        # asyncio calls pause_writing as soon as bytes wait for the kernel, and resume_writing when none do. With TLS, a
        # limit of 0 would pause writing for ever.
        self._transport.set_write_buffer_limits(high=1 if self._security.uses_tls else 0)
        self._certified = certified_name(transport)
        local, peer = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
        if local and peer:
            self.id = f"{local[0]}:{local[1]}-{peer[0]}:{peer[1]}-{self._index}"
        self._owner.channel_opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer = self._frames.get_buffer(sizehint)
        if self._memory.is_limited and self._memory.available < len(buffer):
            return buffer[: max(_LITTLE, self._memory.available)]
        return buffer

    def buffer_updated(self, nbytes: int) -> None:
        frames: list[bytes | memoryview] = list(self._frames.buffer_updated(nbytes))
        if self._frames.error is not None:
            self.close(str(self._frames.error))
            return
        if self._frames.large is not None:
            frames.insert(0, self._frames.take_large())
        if self._memory.is_limited:
            self._reserve(sum(map(len, frames)))
        if frames:
            self._frame_count += len(frames)
            self._received[:0] = reversed(frames)
            self._owner.received(self)
        self._read_on()

    def _reserve(self, received: int) -> None:
        pending = self._frames.pending
        self._memory.reserve(received + pending - self._reserved)
        self._reserved = pending
        self._out_of_memory = pending > _LITTLE and not self._memory.may_read(self)

    def memory_available(self) -> None:
        self._out_of_memory = False
        self._read_on()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        if self._unsent:
            self._owner.sends_on(self)
        else:
            self._owner.sent(self)

    def eof_received(self) -> bool:
        # To close a connection takes time, and thousands of clients may leave in the same turn of the loop. With TLS,
        # asyncio closes it at once.
        if not self._security.uses_tls:
            self._frames.close()  # the next channel that reads has its buffer
            self.stop_reading()
            self._owner.ended(self)
        return not self._security.uses_tls

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._unsent = None
        self._frames.close()
        if self._memory.is_limited:
            self._memory.release(self, self._reserved)
            self._memory.forget(self)
        self._deadlines.incomplete(self, None)
        self._is_paused = False
        self.mute_state = ChannelMuteState.NOT_MUTED
        self._owner.channel_lost(self)

    # called by its owner

    @property
    def is_writing(self) -> bool:
        """The kernel has not accepted all of a response."""
        return self._is_paused or bool(self._unsent)

    @property
    def may_send_on(self) -> bool:
        """Whether the kernel accepts another piece of the response."""
        return bool(self._unsent) and not self._is_paused

    @property
    def user(self) -> str:
        """The name of the client."""
        return (self._certified or ANONYMOUS) if self.authenticator is None else self.authenticator.user

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    @property
    def is_closing(self) -> bool:
        """Whether it is closed, or will be in the next turn of the loop."""
        return self._transport is None or self._transport.is_closing()

    @property
    def can_receive(self) -> bool:
        """Whether a request has been received and may be taken."""
        return bool(self._received) and self.mute_state is ChannelMuteState.NOT_MUTED

    def take_receive(self) -> bytes | memoryview:
        """The next request."""
        return self._received.pop()

    def release(self, size: int) -> None:
        """See :class:`~aioproducer.broker.requests.request.Connection`."""
        if self._memory.is_limited:
            self._memory.release(self, size)

    def begin(self, request: Request) -> None:
        """A request of this channel is being handled."""
        self.in_flight = request
        self.mute_state = next_mute_state(self.mute_state, ChannelMuteEvent.REQUEST_RECEIVED)
        self._read_on()

    def end(self) -> None:
        """The request has ended: its response is written, if it has one."""
        self.in_flight = None
        self.mute_state = next_mute_state(self.mute_state, ChannelMuteEvent.RESPONSE_SENT)
        if self._is_unauthenticated and self.authenticator is not None and self.authenticator.is_known:
            self._is_unauthenticated = False
            self._frames.max_size = self._security.max_request_size

    def throttle(self, event: ChannelMuteEvent) -> None:
        self.mute_state = next_mute_state(self.mute_state, event)

    def send(self, parts: Sequence[Buffer], piece: int = sys.maxsize) -> None:
        """Begins to write a response, with its first ``piece`` bytes; :attr:`is_writing` says whether that was not all
        of it."""
        if self._transport is None:
            return
        if sum(map(len, parts)) <= piece:
            self._write(parts)
        else:
            self._unsent = deque(parts)
            self.send_on(piece)

    def send_on(self, piece: int) -> None:
        """Writes so many bytes more of the response."""
        unsent = self._unsent
        assert unsent is not None
        parts: list[Buffer] = []
        left = piece
        while unsent and left > 0:
            part = unsent.popleft()
            if len(part) > left:
                whole = memoryview(part)
                part = whole[:left]
                unsent.appendleft(whole[left:])
            parts.append(part)
            left -= len(part)
        if not unsent:
            self._unsent = None
        self._write(parts)

    def _write(self, parts: Sequence[Buffer]) -> None:
        transport = self._transport
        assert transport is not None
        if transport.is_closing():
            return  # asyncio would warn
        # In CPython 3.12 and early 3.13, asyncio's writelines does not call pause_writing. Its write does.
        *head, last = parts
        if head:
            transport.writelines(head)
        transport.write(last)

    def finish(self) -> None:
        """Closes the connection when all that it has to send is sent."""
        if self._transport is not None:
            if self._unsent:
                rest, self._unsent = tuple(self._unsent), None
                self._write(rest)
            self._transport.close()

    def close(self, reason: str) -> None:
        """Drops the connection, and logs the reason if there is one."""
        if reason:
            self._log_close(self.id, reason)
        self.abort()

    def abort(self) -> None:
        """Drops the connection, its received requests, and what either side still had to send."""
        self.release(sum(map(len, self._received)))
        self._received.clear()
        self._unsent = None
        if self._transport is not None:
            self._transport.abort()

    def stop_reading(self) -> None:
        """Reads nothing more: the server is being shut down."""
        self._stopped = True
        self._read_on()

    @property
    def pending(self) -> int:
        """How many bytes of an incomplete request have arrived."""
        return self._frames.pending

    def _read_on(self) -> None:
        """Reads unless a whole request already waits while the channel is muted."""
        may = self.mute_state is ChannelMuteState.NOT_MUTED or not self._received
        self._read(may and not (self._out_of_memory or self._stopped))
        is_incomplete = self._reading and self._frames.pending > 0  # and only the client delays it
        if is_incomplete or self._is_incomplete:
            self._is_incomplete = is_incomplete
            self._deadlines.incomplete(self, self._frame_count if is_incomplete else None)

    def _read(self, reading: bool) -> None:
        transport = self._transport
        if reading is self._reading or transport is None or transport.is_closing():
            return
        self._reading = reading
        if reading:
            transport.resume_reading()
        else:
            transport.pause_reading()
