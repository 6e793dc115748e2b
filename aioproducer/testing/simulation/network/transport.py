"""An asyncio transport over a connection in memory, with the semantics of asyncio's own over a socket."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, cast

from aioproducer.testing.simulation.network.endpoint import Endpoint

Data = bytes | bytearray | memoryview

_READ_AT_ONCE = 256 * 1024


class FakeSocket:
    """Accepts every option, but only SO_LINGER has an effect: it drops bytes that were not sent yet."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def close(self) -> None:
        self.endpoint.close()

    def fileno(self) -> int:
        return -1  # as if it were closed: nothing but the transport reads from it

    def setsockopt(self, level: int, name: int, value: object) -> None:
        if (level, name) == (socket.SOL_SOCKET, socket.SO_LINGER):
            self.endpoint.lingers = False

    def getsockname(self) -> tuple[str, int]:
        return self.endpoint.address

    def getpeername(self) -> tuple[str, int]:
        return self.endpoint.peer.address


class SimulatedTransport(asyncio.Transport):
    """Behaves as ``asyncio.selector_events._SelectorSocketTransport``.

    Bytes that the kernel does not take at once are kept without a copy, so the other side sees a buffer that is changed
    after ``write``.
    """

    def __init__(
        self,
        loop: Any,
        endpoint: Endpoint,
        protocol: asyncio.BaseProtocol,
        made: asyncio.Future[None] | None = None,
        *,
        on_closed: Callable[[SimulatedTransport], object] | None = None,
    ) -> None:
        super().__init__(
            {"socket": FakeSocket(endpoint), "peername": endpoint.peer.address, "sockname": endpoint.address}
        )
        self._loop = loop
        self._endpoint = endpoint
        self._on_closed = on_closed
        self._protocol = protocol
        self._buffer: deque[memoryview] = deque()
        self._buffered = 0
        self._high, self._low = 64 * 1024, 16 * 1024
        self._protocol_paused = False
        self._closing = False
        self._lost = False
        self._reading_paused = False
        self._reading_begun = False
        endpoint.transport = self
        loop.call_soon(protocol.connection_made, self)
        loop.call_soon(self._begin_reading)
        if made is not None:
            loop.call_soon(_settle, made)

    def __repr__(self) -> str:
        return f"<SimulatedTransport {self._endpoint.name}>"

    # For the network

    @property
    def wants_to_read(self) -> bool:
        return self._reading_begun and not (self._reading_paused or self._closing or self._lost)

    @property
    def wants_to_write(self) -> bool:
        return self._buffered > 0 and not self._lost

    def read_ready(self) -> None:
        """Called when the kernel has bytes to read; the transport may have stopped reading meanwhile."""
        if not self.wants_to_read:
            return
        try:
            self._read()
        except ConnectionError as error:
            self._force_close(error)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._loop.call_exception_handler(
                {"message": "a protocol raised", "exception": error, "transport": self, "protocol": self._protocol}
            )
            self._force_close(error if isinstance(error, Exception) else None)

    def _read(self) -> None:
        endpoint, protocol = self._endpoint, self._protocol
        if endpoint.at_eof():
            keep_open = cast(asyncio.Protocol, protocol).eof_received()
            if keep_open:
                self._reading_paused = True
            else:
                self.close()
        elif isinstance(protocol, asyncio.BufferedProtocol):
            buffer = memoryview(protocol.get_buffer(-1))
            count = endpoint.receive_into(buffer)
            buffer.release()
            protocol.buffer_updated(count)
        else:
            cast(asyncio.Protocol, protocol).data_received(endpoint.receive(_READ_AT_ONCE))

    def write_ready(self) -> None:
        """Called when the kernel can take bytes."""
        if self._lost:
            return
        try:
            self._flush()
        except ConnectionError as error:
            self._force_close(error)
            return
        if self._protocol_paused and self._buffered <= self._low:
            self._protocol_paused = False
            self._protocol.resume_writing()
        if not self._buffered and self._closing and not self._lost:
            self._lost = True
            self._loop.call_soon(self._end, None)

    def _flush(self) -> None:
        while self._buffer:
            taken = self._endpoint.send(self._buffer[0])
            self._buffered -= taken
            if taken < len(self._buffer[0]):
                self._buffer[0] = self._buffer[0][taken:]
                break
            self._buffer.popleft()

    # asyncio.Transport

    def _begin_reading(self) -> None:
        self._reading_begun = True
        self._endpoint.look()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return not self._closing and not self._reading_paused

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        if not self._closing:
            self._reading_paused = False
            self._endpoint.look()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = 64 * 1024 if low is None else 4 * low
        self._high, self._low = high, high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return self._buffered

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def can_write_eof(self) -> bool:
        return False

    def write(self, data: Data) -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"data must be bytes-like, not {type(data).__name__}")
        self._put([data])

    def writelines(self, list_of_data: Iterable[Data]) -> None:
        self._put(list_of_data)

    def _put(self, parts: Iterable[Data]) -> None:
        if self._lost:
            return
        before = self._buffered
        for data in parts:
            view = memoryview(data).cast("B") if len(data) else None
            if view is not None:
                self._buffer.append(view)
                self._buffered += len(view)
                self._endpoint.written(view)
        try:
            if not before and not self._endpoint.writes_later:
                self._flush()
        except ConnectionError as error:
            self._force_close(error)
            return
        if self._buffered:
            self._endpoint.buffered(self._buffered)
            self._endpoint.look()
        if self._buffered > self._high and not self._protocol_paused:
            self._protocol_paused = True
            self._protocol.pause_writing()

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if not self._buffered:
            self._lost = True
            self._loop.call_soon(self._end, None)

    def abort(self) -> None:
        self._force_close(None)

    def _force_close(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._buffer.clear()
        self._buffered = 0
        self._closing = self._lost = True
        self._loop.call_soon(self._end, error)

    def _end(self, error: Exception | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._endpoint.close()
            if self._on_closed is not None:
                self._on_closed(self)


def _settle(made: asyncio.Future[None]) -> None:
    if not made.done():
        made.set_result(None)
