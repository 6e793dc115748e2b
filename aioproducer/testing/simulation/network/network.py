"""A network in memory: names, listeners, connections, and their faults."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from enum import Enum
from random import Random
from typing import Any, Protocol

from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.endpoint import Endpoint
from aioproducer.testing.simulation.trace import Trace

Address = tuple[str, int]


class Listener(Protocol):
    """A listener on a port."""

    def connected(self, end: Endpoint, /) -> None:
        """Called with the server's end of each new connection."""


_CLIENT = "10.0.0.1"
_DEAD = "10.0.2.1"
_NEVER = 127.0
"""Seconds after which Linux gives up connecting."""


class Fate(Enum):
    """The result of an attempt to connect."""

    ARRIVE = "arrive"
    REFUSED = "refused"
    LOST = "lost"
    UNKNOWN_HOST = "unknown host"


class NetworkFaults:
    """A network without faults; a subclass overrides the methods of its faults."""

    def connecting(self, host: str) -> Fate:
        """Called when a client connects."""
        return Fate.ARRIVE

    def cut(self, end: Endpoint, count: int) -> int | None:
        """Called when ``count`` bytes are sent; unless None, the connection is severed after that many of them."""
        return None

    def unreachable_until(self, server: Address) -> float:
        """When a server becomes reachable; bytes under way arrive then."""
        return 0.0


class Watch:
    """Sees the bytes that clients write and read."""

    def written(self, end: Endpoint, data: memoryview) -> None:
        """Called with the bytes that a client writes, to the kernel or to the transport's buffer."""

    def read(self, end: Endpoint, data: memoryview) -> None:
        """Called with the bytes that a client reads."""

    def buffered(self, end: Endpoint, size: int) -> None:
        """Called after a write, with the number of bytes that wait in the client's transport."""


class Scheduler(Protocol):
    """The loop, as the network uses it."""

    def at(self, when: float, callback: Callable[[], object], /) -> None:
        """Calls back at the time ``when``."""

    def exact_time(self) -> float:
        """The time in seconds."""

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> object: ...

    def create_future(self) -> asyncio.Future[Any]: ...


class Network:
    """Connects clients and servers in memory. It is created before its loop."""

    def __init__(self, random: Random, conditions: Conditions, faults: NetworkFaults, trace: Trace) -> None:
        self.conditions = conditions
        self.faults = faults
        self.trace = trace
        self.random = random
        self.watch = Watch()
        self._loop: Scheduler
        self._addresses: dict[str, str] = {}
        self._listeners: dict[Address, Listener] = {}
        self._next_port = 30_000
        self._connections = 0
        self._changed: dict[Endpoint, None] = {}
        self.open: dict[Endpoint, None] = {}
        """Ends that are not closed."""

    def attach(self, loop: Scheduler) -> None:
        self._loop = loop

    # Time

    def at(self, when: float, callback: Callable[[], object]) -> None:
        self._loop.at(when, callback)

    def when(self, end: Endpoint, latency: float) -> float:
        """When bytes that leave this end now reach the other."""
        server = end.peer.address if end.is_client else end.address
        return max(self._loop.exact_time() + self._vary(latency), self.faults.unreachable_until(server))

    def _vary(self, latency: float) -> float:
        return latency * self.random.uniform(0.5, 1.5)

    def pieces(self, count: int) -> list[int]:
        """The sizes in which ``count`` bytes travel."""
        sizes = []
        while count > 1 and self.random.random() < self.conditions.splits:
            size = self.random.randrange(1, count)
            sizes.append(size)
            count -= size
        return [*sizes, count] if count else sizes

    # Sockets that may be ready

    def look_at(self, end: Endpoint) -> None:
        self._changed[end] = None

    def ready(self) -> list[Callable[[], object]]:
        """The callbacks of ready sockets, in a random order, as a selector returns them."""
        found: list[list[Callable[[], object]]] = []
        for end in list(self._changed):
            transport = end.transport
            calls: list[Callable[[], object]] = []
            if transport is not None:
                if transport.wants_to_read and end.readable():
                    calls.append(transport.read_ready)
                if transport.wants_to_write and end.writable():
                    calls.append(transport.write_ready)
            if calls:
                found.append(calls)
            else:
                del self._changed[end]
        if len(found) > 1:
            self.random.shuffle(found)
        return [call for calls in found for call in calls]

    def closed(self, end: Endpoint) -> None:
        self.open.pop(end, None)
        self._changed.pop(end, None)

    # Watching and severing connections

    def cut(self, end: Endpoint, count: int) -> int | None:
        """How many of these bytes arrive before the connection is severed; None if it is not."""
        return self.faults.cut(end, count)

    def written(self, end: Endpoint, data: memoryview) -> None:
        self.watch.written(end, data)

    def read(self, end: Endpoint, data: memoryview) -> None:
        self.watch.read(end, data)

    def buffered(self, end: Endpoint, size: int) -> None:
        self.watch.buffered(end, size)

    # Names and listeners

    async def resolve(self, host: str) -> str:
        """The address of a name; every name has one."""
        if host.replace(".", "").isdigit():
            return host
        await asyncio.sleep(self._vary(self.conditions.latency))
        return self._addresses.setdefault(host, f"10.0.1.{len(self._addresses) + 1}")

    async def addresses(self, host: str) -> list[str]:
        """The addresses that a client gets for a name."""
        address = await self.resolve(host)
        return [_DEAD, address] if self.conditions.dead_address and address != host else [address]

    def listen(self, listener: Listener, host: str, port: int) -> int:
        if port == 0:
            self._next_port += 1
            port = self._next_port
        if (host, port) in self._listeners:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self._listeners[host, port] = listener
        return port

    def unlisten(self, host: str, port: int) -> None:
        del self._listeners[host, port]

    # Connecting

    async def connect(self, host: str, port: int) -> Endpoint:
        """The client's end of a new connection; raises OSError if it cannot be made."""
        fate = self.faults.connecting(host)
        self._connections += 1
        attempt = _Attempt(self, self._connections, (host, port), self._loop.create_future())
        self.trace("connect", self._connections, port, fate.value)
        if fate is Fate.UNKNOWN_HOST:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if fate is Fate.LOST:
            gave_up = TimeoutError(errno.ETIMEDOUT, "Connection timed out")
            self.at(self._loop.exact_time() + _NEVER, lambda: attempt.failed(gave_up))
        elif fate is Fate.REFUSED:
            self.at(attempt.when(), attempt.refused)
        else:
            self.at(attempt.when(), attempt.arrived)
        return await attempt.wait()

    def listener(self, address: Address) -> Listener | None:
        return self._listeners.get(address)

    def pair(self, number: int, server: Address) -> tuple[Endpoint, Endpoint]:
        """Both ends of a new connection: the client's, the server's."""
        latency = self._vary(self.conditions.latency)
        client = Endpoint(self, f"{number}>", (_CLIENT, number), latency, is_client=True)
        other = Endpoint(self, f"{number}<", server, latency, is_client=False)
        client.peer, other.peer = other, client
        self.open[client] = self.open[other] = None
        return client, other

    def accept(self, listener: Listener, end: Endpoint) -> None:
        self._loop.call_soon(listener.connected, end)

    def time(self) -> float:
        return self._loop.exact_time()


class _Attempt:
    """A client's attempt to connect."""

    def __init__(self, network: Network, number: int, server: Address, made: asyncio.Future[Endpoint]) -> None:
        self._network = network
        self._number = number
        self._server = server
        self._made = made

    async def wait(self) -> Endpoint:
        try:
            return await self._made
        except asyncio.CancelledError:
            if self._made.done() and not self._made.cancelled() and self._made.exception() is None:
                self._made.result().close()
            raise

    def when(self) -> float:
        latency = self._network.conditions.latency * self._network.random.uniform(0.5, 1.5)
        return max(self._network.time() + latency, self._network.faults.unreachable_until(self._server))

    def arrived(self) -> None:
        """The attempt reaches the server."""
        listener = self._network.listener(self._server)
        if listener is None:
            self._network.at(self.when(), self.refused)
            return
        client, server = self._network.pair(self._number, self._server)
        self._network.accept(listener, server)
        self._network.at(self.when(), lambda: self._established(client))

    def _established(self, client: Endpoint) -> None:
        if self._made.done():
            client.close()
        else:
            self._made.set_result(client)

    def refused(self) -> None:
        self.failed(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"))

    def failed(self, error: OSError) -> None:
        if not self._made.done():
            self._made.set_exception(error)
