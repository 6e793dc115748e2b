"""A long line whose length can be changed, in a process of its own, that counts what producers send over it.

It delays every byte, as ``aioproducer.testing.slow_line`` does, but is made to carry much: buffers are used again, and
nothing but system calls touches the bytes. It does not throttle, and takes bytes as fast as they come: what a real line
adds, the TCP windows and the losses, it does not have. Its ``select`` is right to some 50 µs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import socket
import sys
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.harness.processes import python_command
from benchmarks.harness.produce_meter import Counts, ProduceMeter

BUFFER = 256 * 1024
"""Bytes that are read at once."""

_START = "from benchmarks.harness.metered_line import Line; Line().serve()"


@dataclass(frozen=True)
class MeteredLine:
    """The process as others see it."""

    host: str
    port: int
    _process: asyncio.subprocess.Process

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    async def leads_to(self, address: str) -> None:
        """Sets where connections go, as host:port. Earlier ones are refused."""
        host, _, port = address.rpartition(":")
        await self._tell(to=[host, int(port)])

    async def set_round_trip(self, milliseconds: float, *, uncounted: int = 0) -> Counts:
        """Of bytes that come from now on; returns what has been counted since the line was last told anything.

        The batches with the first ``uncounted`` bytes from now on are left out.
        """
        return await self._tell(one_way=milliseconds / 2000, uncounted=uncounted)

    async def _tell(self, **what: object) -> Counts:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        said = await self._process.stdout.readline()
        if not said:
            raise RuntimeError(f"the line ended with status {await self._process.wait()}")
        return Counts(**json.loads(said))


@contextlib.asynccontextmanager
async def metered_line() -> AsyncIterator[MeteredLine]:
    """One without delay, which leads nowhere yet."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*python_command(_START), stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        host, _, port = (await process.stdout.readline()).decode().strip().rpartition(":")
        yield MeteredLine(host, int(port), process)
    finally:
        process.stdin.close()
        await process.wait()


@dataclass
class _Chunk:
    due: float
    buffer: bytearray
    begin: int
    end: int


@dataclass(eq=False)
class _Way:
    """One direction of a connection."""

    source: socket.socket
    sink: socket.socket
    meter: ProduceMeter | None
    under_way: deque[_Chunk] = field(default_factory=deque)
    """A chunk without bytes is the end."""
    reading: bool = True
    full: bool = False
    """The sink takes nothing more at present."""
    over: bool = False


class Line:
    """In the process: one loop of ``select`` over all connections. Each line of the standard input is told by JSON, and
    answered with the counts since the last one; the process ends with it."""

    def __init__(self) -> None:
        self._one_way = 0.0
        self._to: tuple[str, int] | None = None
        self._counts = Counts()
        self._ways: list[_Way] = []
        self._free: list[bytearray] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._said = b""

    def serve(self) -> None:
        print("{}:{}".format(*self._listener.getsockname()), flush=True)
        while True:
            sources = {way.source: way for way in self._ways if way.reading}
            watched: list[Any] = [sys.stdin, self._listener, *sources]
            full = [way.sink for way in self._ways if way.full]
            readable, writable, _ = select.select(watched, full, [], self._until_next(time.monotonic()))
            now = time.monotonic()
            for ready in readable:
                if ready is sys.stdin:
                    if not self._listen_to_orders():
                        return
                elif ready is self._listener:
                    self._accept()
                else:
                    self._read(sources[ready], now)
            for way in self._ways:
                if way.full and way.sink in writable:
                    way.full = False
                if not way.full:
                    self._deliver(way, now)
            self._close_ended()

    def _until_next(self, now: float) -> float | None:
        due = [way.under_way[0].due for way in self._ways if way.under_way and not way.full]
        return max(0.0, min(due) - now) if due else None

    def _listen_to_orders(self) -> bool:
        said = os.read(sys.stdin.fileno(), 65536)
        *orders, self._said = (self._said + said).split(b"\n")
        for order in orders:
            self._obey(json.loads(order))
        return bool(said)

    def _obey(self, order: dict[str, Any]) -> None:
        if "to" in order:
            host, port = order["to"]
            self._to = host, port
        self._one_way = order.get("one_way", self._one_way)
        print(json.dumps(asdict(self._counts)), flush=True)
        self._counts.reset(uncounted=order.get("uncounted", 0))

    def _accept(self) -> None:
        accepted, _ = self._listener.accept()
        try:
            if self._to is None:
                raise ConnectionRefusedError
            connected = socket.create_connection(self._to)
        except OSError:
            accepted.close()
            return
        for one in (accepted, connected):
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        there = _Way(accepted, connected, ProduceMeter(self._counts))
        self._ways += [there, _Way(connected, accepted, None)]

    def _read(self, way: _Way, now: float) -> None:
        buffer = self._free.pop() if self._free else bytearray(BUFFER)
        try:
            size = way.source.recv_into(buffer)
        except BlockingIOError:
            self._free.append(buffer)
            return
        except OSError:
            size = 0
        way.reading = size > 0
        if way.meter is not None and size:
            way.meter.feed(memoryview(buffer)[:size])
        way.under_way.append(_Chunk(now + self._one_way, buffer, 0, size))

    def _deliver(self, way: _Way, now: float) -> None:
        while way.under_way and (chunk := way.under_way[0]).due <= now:
            try:
                if chunk.end == 0:
                    way.over = True
                    way.sink.shutdown(socket.SHUT_WR)
                elif not way.over:
                    chunk.begin += way.sink.send(memoryview(chunk.buffer)[chunk.begin : chunk.end])
                    if chunk.begin < chunk.end:
                        way.full = True
                        return
            except BlockingIOError:
                way.full = True
                return
            except OSError:  # the other end is gone: what is under way to it is lost
                way.over, way.reading = True, False
            way.under_way.popleft()
            self._free.append(chunk.buffer)

    def _close_ended(self) -> None:
        """A connection ends when both of its ways are over."""
        over = {way.source for way in self._ways if way.over}
        if ended := [way for way in self._ways if way.over and way.sink in over]:
            self._ways = [way for way in self._ways if way not in ended]
            for way in ended:
                way.source.close()
