"""A listener on the network in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aioproducer.testing.simulation.network.endpoint import Endpoint
from aioproducer.testing.simulation.network.transport import SimulatedTransport


class SimulatedServer(asyncio.AbstractServer):
    """Accepts connections until it is closed; ``wait_closed`` waits for them to end, too, as from Python 3.12 on."""

    def __init__(self, loop: Any, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str) -> None:
        self._loop = loop
        self._protocol_factory = protocol_factory
        self.host = host
        self.port = 0
        self._open: dict[SimulatedTransport, None] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._serving = True

    @property
    def sockets(self) -> tuple[ListeningSocket, ...]:
        return (ListeningSocket((self.host, self.port)),) if self._serving else ()

    def connected(self, endpoint: Endpoint) -> None:
        """Called with each client's connection; the server may have been closed meanwhile."""
        if not self._serving:
            endpoint.reset()
            return
        transport = SimulatedTransport(self._loop, endpoint, self._protocol_factory(), on_closed=self._closed)
        self._open[transport] = None

    def _closed(self, transport: SimulatedTransport) -> None:
        del self._open[transport]
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        if not self._serving and not self._open:
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self._waiters.clear()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = self._loop
        return loop

    async def start_serving(self) -> None:
        """Does nothing: the server accepts connections from the beginning."""

    async def serve_forever(self) -> None:
        await self._loop.create_future()

    def is_serving(self) -> bool:
        return self._serving

    def close(self) -> None:
        if self._serving:
            self._serving = False
            self._loop.network.unlisten(self.host, self.port)
            self._wake_waiters()

    async def wait_closed(self) -> None:
        if self._serving or self._open:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter


class ListeningSocket:
    """The socket of a server, with its address."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address

    def getsockname(self) -> tuple[str, int]:
        return self._address
