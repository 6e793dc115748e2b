"""One end of a TCP connection, as in the kernel."""

from __future__ import annotations

import errno
import math
import zlib
from collections import deque
from collections.abc import Callable
from typing import Protocol

from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.trace import Trace


class Carrier(Protocol):
    """The network that carries the bytes."""

    conditions: Conditions
    trace: Trace

    def at(self, when: float, callback: Callable[[], object]) -> None: ...

    def time(self) -> float: ...

    def when(self, end: Endpoint, latency: float) -> float:
        """When bytes that leave this end now reach the other."""

    def pieces(self, count: int) -> list[int]:
        """The sizes in which ``count`` bytes travel."""

    def cut(self, end: Endpoint, count: int) -> int | None:
        """How many of these bytes arrive before the connection is severed; None if it is not."""

    def look_at(self, end: Endpoint) -> None:
        """Called when this end may be ready."""

    def written(self, end: Endpoint, data: memoryview) -> None: ...

    def read(self, end: Endpoint, data: memoryview) -> None: ...

    def buffered(self, end: Endpoint, size: int) -> None: ...

    def closed(self, end: Endpoint) -> None: ...


class SocketUser(Protocol):
    """The transport, which waits until its end of the connection is ready."""

    @property
    def wants_to_read(self) -> bool: ...

    @property
    def wants_to_write(self) -> bool: ...

    def read_ready(self) -> None: ...

    def write_ready(self) -> None: ...


class Endpoint:
    """Bytes arrive at the peer later, in order and in pieces; at most one window is under way.

    An end that is closed with bytes unread, or that gets bytes after, resets the connection, as TCP does. A connection
    that is *severed* carries nothing more, and both ends learn of it by a reset.
    """

    def __init__(
        self, network: Carrier, name: str, address: tuple[str, int], latency: float, *, is_client: bool
    ) -> None:
        self.name = name
        self.is_client = is_client
        self.address = address
        self.peer: Endpoint
        self.transport: SocketUser | None = None
        self.closed = False
        self.lingers = True
        """Whether bytes that were sent still arrive after the socket is closed."""
        self._network = network
        self._latency = latency
        self._arrived: deque[memoryview] = deque()
        self._unread = 0
        self._eof = False
        self._reset = False
        self._severed = False
        self._in_transit = 0  # bytes under way to the peer
        self._last_arrival = 0.0  # at the peer
        self._under_way: deque[tuple[float, float]] = (
            deque()
        )  # when a piece would arrive if the line were fast, and does
        self._dropped_from = math.inf  # pieces from then on, by the first of these times, never leave

    def __repr__(self) -> str:
        return f"<Endpoint {self.name}>"

    # For the transport

    @property
    def writes_later(self) -> bool:
        return self._network.conditions.writes_later

    def readable(self) -> bool:
        return self._unread > 0 or self._eof or self._reset

    def writable(self) -> bool:
        return self._reset or self._room() > 0

    def at_eof(self) -> bool:
        return self._eof and not self._unread and not self._reset

    def look(self) -> None:
        """Has the loop check this end, because it may have become ready."""
        if self.transport is not None:
            self._network.look_at(self)

    def written(self, data: memoryview) -> None:
        """Called with the bytes that the process writes; the kernel may get them later."""
        if self.is_client:
            self._network.written(self, data)

    def buffered(self, size: int) -> None:
        """Called after a write, with the number of bytes that the kernel has not accepted."""
        if self.is_client:
            self._network.buffered(self, size)

    def send(self, data: memoryview) -> int:
        """Sends; returns how many bytes the kernel accepts now."""
        if self._reset or self.closed:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        count = min(self._room(), len(data))
        if count <= 0:
            return 0
        if self._severed:
            return count
        cut = self._network.cut(self, count)
        for size in self._network.pieces(count if cut is None else cut):
            self._carry(bytes(data[:size]))
            data = data[size:]
        if cut is not None:
            self._network.trace("severed", self.name)
            self.sever()
        return count

    def receive_into(self, buffer: memoryview) -> int:
        taken = 0
        while self._arrived and taken < len(buffer):
            piece = self._arrived[0]
            size = min(len(piece), len(buffer) - taken)
            buffer[taken : taken + size] = piece[:size]
            taken += size
            if size == len(piece):
                self._arrived.popleft()
            else:
                self._arrived[0] = piece[size:]
        if not taken:
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        self._unread -= taken
        if self.is_client:
            self._network.read(self, buffer[:taken])
        self._network.at(self._when(), self.peer.look)  # the window opens
        return taken

    def receive(self, at_most: int) -> bytes:
        buffer = bytearray(min(at_most, self._unread))
        self.receive_into(memoryview(buffer))
        return bytes(buffer)

    def close(self) -> None:
        """Closes the socket. The bytes that were sent still arrive, and then the end of the stream.

        Unless ``lingers``, bytes that are not on the line yet are dropped, and the connection is reset.
        """
        if self.closed:
            return
        self.closed = True
        self.transport = None
        self._network.closed(self)
        if self._severed or self._reset:
            return
        if not self.lingers:
            self._drop_unsent()
        end = self.peer._get_reset if self._unread or not self.lingers else self.peer._get_eof
        self._network.at(self._when(), end)

    def reset(self) -> None:
        """Resets a connection that is not accepted."""
        self.closed = True
        self._network.closed(self)
        self._network.at(self._when(), self.peer._get_reset)

    def sever(self) -> None:
        """Cuts the line: nothing more arrives."""
        for end in (self, self.peer):
            if not end._severed:
                end._severed = True
                end._network.at(end._when(), end.peer._get_reset)

    # The way to the peer

    def _room(self) -> int:
        return self._network.conditions.window - self._in_transit - self.peer._unread

    def _when(self, size: int = 0) -> float:
        """When bytes sent now arrive at the peer; never before earlier ones."""
        begins = max(self._network.when(self, self._latency), self._last_arrival)
        self._last_arrival = begins + size / self._network.conditions.bandwidth
        if size:
            self._under_way.append((begins, self._last_arrival))
        return self._last_arrival

    def _drop_unsent(self) -> None:
        """Drops the sent bytes that are not on the line yet."""
        self._dropped_from = self._network.time() + self._latency
        on_line = [arrives for begins, arrives in self._under_way if begins <= self._dropped_from]
        self._last_arrival = on_line[-1] if on_line else 0.0

    def _carry(self, piece: bytes) -> None:
        self._in_transit += len(piece)
        self._network.at(self._when(len(piece)), lambda: self._arrive(piece))

    def _arrive(self, piece: bytes) -> None:
        peer = self.peer
        self._in_transit -= len(piece)
        begins, _ = self._under_way.popleft()
        if peer._reset or begins > self._dropped_from:
            return
        if peer.closed:
            self._network.at(peer._when(), self._get_reset)
            return
        self._network.trace("bytes", self.name, len(piece), zlib.crc32(piece))
        peer._arrived.append(memoryview(piece))
        peer._unread += len(piece)
        peer.look()

    def _get_eof(self) -> None:
        if not self.closed and not self._reset:
            self._eof = True
            self.look()

    def _get_reset(self) -> None:
        if self.closed or self._reset:
            return
        self._network.trace("reset", self.name)
        self._reset = True
        if self._network.conditions.reset_drops_unread:
            self._arrived.clear()
            self._unread = 0
        self.look()
