"""One client connection."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from aioproducer.broker.request import Request
from aioproducer.errors import InvalidReceiveException
from aioproducer.protocol.frame_reader import FrameReader
from aioproducer.protocol.primitives import Buffer

if TYPE_CHECKING:
    from aioproducer.broker.processor import Processor


class KafkaChannel(asyncio.BufferedProtocol):
    """Cuts what a client sends into frames and hands them to its :class:`Processor`, one at a time.

    While a request is handled, or its response not yet wholly taken over by the kernel, the channel is *muted*: it
    hands over nothing and reads nothing more. That keeps a client's requests in order, and bounds what a client that
    never reads can cost: one response, and the one receive that was under way.
    """

    def __init__(self, processor: Processor, max_receive_size: int) -> None:
        self._processor = processor
        self._frames = FrameReader(max_receive_size)
        self._received: deque[bytes] = deque()
        self._in_flight: Request | None = None
        self._writing = False
        self._handing_over = False
        self._reading = True
        self._transport: asyncio.Transport | None = None
        self.peer = "unknown"
        self.last_active = 0.0

    # what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # pause_writing comes as soon as anything waits for the kernel, resume_writing when all of it is gone.
        self._transport.set_write_buffer_limits(high=0)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if peer else "unknown"
        self._processor.channel_opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        try:
            frames = self._frames.buffer_updated(nbytes)
        except InvalidReceiveException as error:
            self.close(str(error))
            return
        if frames:
            self._received.extend(frames)
            self._hand_over()

    def pause_writing(self) -> None:
        self._writing = True

    def resume_writing(self) -> None:
        self._writing = False
        self._hand_over()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._in_flight is not None:
            request, self._in_flight = self._in_flight, None
            request.abandon()
        # Kafka handles what a client sent before it left: records sent with acks=0 are not lost.
        self._writing = False
        self._hand_over()
        self._processor.channel_closed(self)

    # what the request says

    def send_response(self, parts: Sequence[Buffer]) -> None:
        self._in_flight = None
        if self._transport is not None:
            # In CPython 3.12 and early 3.13 asyncio's writelines forgets to call pause_writing, and to look whether the
            # transport is closing; write does neither.
            *head, last = parts
            if head and not self._transport.is_closing():
                self._transport.writelines(head)
            self._transport.write(last)
            self._hand_over()

    def no_operation(self) -> None:
        self._in_flight = None
        self._hand_over()

    def close(self, reason: str) -> None:
        """Drops the connection and whatever it still had to say."""
        self._in_flight = None
        self._received.clear()
        if self._transport is not None:
            self._processor.log_close(self, reason)
            self._transport.abort()

    def abort(self) -> None:
        """Drops the connection without a word: the server stops, or the client is idle."""
        self._received.clear()
        if self._transport is not None:
            self._transport.abort()

    # muting

    def _hand_over(self) -> None:
        if self._handing_over:
            return
        self._handing_over = True
        try:
            while self._received and self._in_flight is None and not self._writing:
                frame = self._received.popleft()
                self._processor.receive(self, frame)
        finally:
            self._handing_over = False
        self._mute(self._in_flight is not None or self._writing)

    def begin(self, request: Request) -> None:
        """The processor starts on a request; nothing more is handed over until it has ended."""
        if self._transport is None:
            request.abandon()
        else:
            self._in_flight = request

    def _mute(self, muted: bool) -> None:
        if self._transport is None or self._transport.is_closing() or muted != self._reading:
            return
        self._reading = not muted
        if muted:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
