"""One client connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Protocol, cast

from aioproducer.broker.network.channel_mute_state import ChannelMuteEvent, ChannelMuteState, next_mute_state
from aioproducer.broker.network.memory_pool import MemoryPool
from aioproducer.broker.requests.request import ClientSoftware, Request
from aioproducer.broker.security.listener_security import ListenerSecurity
from aioproducer.broker.security.sasl_server_authenticator import ANONYMOUS
from aioproducer.errors import InvalidReceiveException
from aioproducer.protocol.frame_reader import FrameReader
from aioproducer.protocol.primitives import Buffer
from aioproducer.security.tls import certified_name

_LITTLE = 16 * 1024
"""Bytes of a request that are read even if no memory is left, so that parts of large ones do not hold up small ones."""


class ChannelOwner(Protocol):
    """Who takes a channel's requests and is told what becomes of it: its processor."""

    spare_buffers: list[bytearray]
    """Shared by its channels; see :class:`FrameReader`."""

    def channel_opened(self, channel: KafkaChannel) -> None:
        """It is connected."""

    def received(self, channel: KafkaChannel) -> None:
        """Something has come, or the channel may go on."""

    def incomplete(self, channel: KafkaChannel, frame: int | None) -> None:
        """It waits for the rest of its frame of this number, or for nothing."""

    def sent(self, channel: KafkaChannel) -> None:
        """The kernel has taken over all that was written."""

    def close_channel(self, channel: KafkaChannel, reason: str) -> None:
        """It has to be dropped, for this reason."""

    def channel_lost(self, channel: KafkaChannel) -> None:
        """asyncio has let go of it."""


class KafkaChannel(asyncio.BufferedProtocol):
    """Cuts what a client sends into frames, and keeps them until its owner takes them, one at a time.

    From a request until the kernel has taken its whole response, the channel is *muted*: no further request is taken.
    That keeps a client's requests in order. Meanwhile one complete request may wait; beyond that the socket is not
    read, which limits what a client that never reads can cost.

    A channel whose client is gone keeps requests that were received completely: they are handled, too.
    """

    def __init__(
        self,
        owner: ChannelOwner,
        listener: str,
        address: str,
        index: int,
        memory: MemoryPool,
        security: ListenerSecurity,
    ) -> None:
        self._owner = owner
        self._frames = FrameReader(security.max_receive_size, owner.spare_buffers, gathers=True)
        self._memory = memory
        self._stopped = False
        self._frame_count = 0
        self._waits = False  # for the rest of a request
        self._reserved = 0  # of the memory, for a frame that is incomplete
        self._out_of_memory = False
        self._received: deque[bytes | memoryview] = deque()
        self._index = index
        self._reading = True
        self._transport: asyncio.Transport | None = None
        self.was_opened = False
        self.listener = listener
        self.address = address
        self._security = security
        self.security_protocol = security.protocol
        self.authenticator = security.authenticator()
        self._certified = ""  # who its certificate says that it is
        self._is_stranger = self.authenticator is not None
        self.software: ClientSoftware | None = None
        self.id = f"-{index}"
        self.mute_state = ChannelMuteState.NOT_MUTED
        self.in_flight: Request | None = None
        self.is_queued = False
        """Among those whose receives the owner is about to take."""
        self.last_active = 0.0

    # what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.was_opened = True
        # pause_writing is called as soon as anything waits for the kernel, resume_writing when all of it is gone. For
        # TLS, 0 would mean always too much.
        self._transport.set_write_buffer_limits(high=0 if self._security.tls is None else 1)
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
        try:
            frames: list[bytes | memoryview] = list(self._frames.buffer_updated(nbytes))
        except InvalidReceiveException as error:
            self._owner.close_channel(self, str(error))
            return
        if self._frames.large is not None:
            frames.insert(0, self._frames.take_large())
        if self._memory.is_limited:
            self._reserve(sum(map(len, frames)))
        if frames:
            self._frame_count += len(frames)
            self._received.extend(frames)
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
        self.is_writing = True

    def resume_writing(self) -> None:
        self.is_writing = False
        self._owner.sent(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._frames.close()
        if self._memory.is_limited:
            self._memory.release(self, self._reserved)
            self._memory.forget(self)
        self._owner.incomplete(self, None)
        self.is_writing = False
        self.mute_state = ChannelMuteState.NOT_MUTED
        self._owner.channel_lost(self)

    # what its owner asks

    is_writing = False
    """The kernel has not taken over all of a response."""

    @property
    def user(self) -> str:
        """Who the client is."""
        return (self._certified or ANONYMOUS) if self.authenticator is None else self.authenticator.user

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    @property
    def is_closing(self) -> bool:
        """Closed by this side, as soon as the loop comes to it."""
        return self._transport is None or self._transport.is_closing()

    @property
    def can_receive(self) -> bool:
        """Whether a request is there and may be taken."""
        return bool(self._received) and self.mute_state is ChannelMuteState.NOT_MUTED

    def take_receive(self) -> bytes | memoryview:
        """The next request."""
        return self._received.popleft()

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
        """It has ended: nothing of a response is left to be written."""
        self.in_flight = None
        self.mute_state = next_mute_state(self.mute_state, ChannelMuteEvent.RESPONSE_SENT)
        if self._is_stranger and self.authenticator is not None and self.authenticator.is_known:
            self._is_stranger = False
            self._frames.max_size = self._security.max_request_size

    def throttle(self, event: ChannelMuteEvent) -> None:
        self.mute_state = next_mute_state(self.mute_state, event)

    def send(self, parts: Sequence[Buffer]) -> None:
        """Begins to write a response; :attr:`is_writing` says whether it is under way still."""
        transport = self._transport
        if transport is None:
            return
        # In CPython 3.12 and early 3.13 asyncio's writelines forgets to call pause_writing, and to look whether the
        # transport is closing; write does neither.
        *head, last = parts
        if head and not transport.is_closing():
            transport.writelines(head)
        transport.write(last)

    def abort(self) -> None:
        """Drops the connection, and whatever either side still had to send."""
        self.release(sum(map(len, self._received)))
        self._received.clear()
        if self._transport is not None:
            self._transport.abort()

    def stop_reading(self) -> None:
        """Reads nothing more, for ever: the server is being shut down."""
        self._stopped = True
        self._read_on()

    @property
    def pending(self) -> int:
        """How many bytes of an incomplete request have come."""
        return self._frames.pending

    def _read_on(self) -> None:
        """One receive may wait while the channel is muted, and no more."""
        may = self.mute_state is ChannelMuteState.NOT_MUTED or not self._received
        self._read(may and not (self._out_of_memory or self._stopped))
        waits = self._reading and self._frames.pending > 0  # for the client, and nothing else
        if waits or self._waits:
            self._waits = waits
            self._owner.incomplete(self, self._frame_count if waits else None)

    def _read(self, reading: bool) -> None:
        transport = self._transport
        if reading is self._reading or transport is None or transport.is_closing():
            return
        self._reading = reading
        if reading:
            transport.resume_reading()
        else:
            transport.pause_reading()
