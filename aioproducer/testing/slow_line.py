"""A long line on one machine: a proxy that forwards every byte, in both directions, after a fixed delay.

It delays but does not throttle: any number of bytes may be under way at once. It is as punctual as its event loop:
uvloop rounds times to milliseconds, and so does asyncio over epoll, but not over ``select``.

::

    async with SlowLine(one_way=0.075) as line:
        async with EmbeddedCluster(advertised={0: line.address}) as cluster:
            line.leads_to(*cluster.listener(0))
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Any, Self

POLLED = 0.0005
"""Seconds before an arrival in which the loop is polled, because timers may be that late."""


class SlowLine:
    """Listens on a free port of 127.0.0.1; ``one_way`` is the delay in seconds, so the round trip takes twice that."""

    def __init__(self, one_way: float) -> None:
        self.one_way = one_way
        self._target: tuple[str, int] | None = None
        self._server: asyncio.Server | None = None
        self._ends: set[_End] = set()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _End(self), "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    @property
    def address(self) -> tuple[str, int]:
        """The address that clients connect to."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    def leads_to(self, host: str, port: int) -> None:
        """Sets the address to which connections are forwarded. Earlier connections are refused."""
        self._target = host, port

    def cut(self) -> None:
        """Ends all connections at once, at both ends; bytes under way are lost."""
        for end in tuple(self._ends):
            end.drop()


class _End(asyncio.Protocol):
    """One end of one connection: the bytes that it receives leave the other end after the delay.

    The accepted end creates the other one, and reads nothing before that is connected.
    """

    def __init__(self, line: SlowLine, other: _End | None = None) -> None:
        self._line = line
        self._other = other
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._under_way: deque[tuple[float, bytes | None]] = deque()
        """With the time of arrival; None is the end of the connection."""
        self._timer: asyncio.Handle | None = None
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._line._ends.add(self)
        if self._other is None:
            self._transport.pause_reading()
            self._connecting = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            if self._line._target is None:
                raise ConnectionRefusedError
            other = _End(self._line, self)
            await self._loop.create_connection(lambda: other, *self._line._target)
        except OSError:
            self.drop()
        else:
            self._other = other
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._send(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self in self._line._ends:
            self._send(None)

    def _send(self, data: bytes | None) -> None:
        self._under_way.append((self._loop.time() + self._line.one_way, data))
        if self._timer is None:
            self._expect_next()

    def _expect_next(self) -> None:
        if not self._under_way:
            self._timer = None
        elif (begin := self._under_way[0][0] - POLLED) > self._loop.time():
            self._timer = self._loop.call_at(begin, self._arrive)
        else:
            self._timer = self._loop.call_soon(self._arrive)

    def _arrive(self) -> None:
        now = self._loop.time()
        while self._under_way and self._under_way[0][0] <= now:
            data = self._under_way.popleft()[1]
            if data is None:
                self._line._ends.discard(self)
            if self._other is None or self._other._transport.is_closing():
                continue
            if data is None:
                self._other._transport.close()
            else:
                self._other._transport.write(data)
        self._expect_next()

    def drop(self) -> None:
        """Ends the connection at this end at once; bytes under way to the other end are lost."""
        self._line._ends.discard(self)
        self._under_way.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._connecting is not None:
            self._connecting.cancel()
        self._transport.abort()
