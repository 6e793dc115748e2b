"""A port on the network in memory, for servers that accept connections one by one."""

from __future__ import annotations

import asyncio
from collections import deque

from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.network.endpoint import Endpoint
from aioproducer.testing.simulation.network.transport import FakeSocket


class SimulatedListening:
    """``aioproducer.broker.network.gate.listening_socket.Listening``; see :func:`listen_on_network`."""

    def __init__(self, loop: SimulatedLoop, host: str) -> None:
        self._loop = loop
        self._host = host
        self.port = 0
        self._made: deque[Endpoint] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._open = True

    def connected(self, endpoint: Endpoint) -> None:
        """Called with each client's connection; the port may have been closed meanwhile."""
        if not self._open:
            endpoint.reset()
            return
        self._made.append(endpoint)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def accept(self) -> tuple[FakeSocket, tuple[str, int]]:
        while not self._made:
            self._waiter = self._loop.create_future()
            await self._waiter
        endpoint = self._made.popleft()
        return FakeSocket(endpoint), endpoint.peer.address

    def close(self) -> None:
        if self._open:
            self._open = False
            self._loop.network.unlisten(self._host, self.port)
            while self._made:
                self._made.popleft().reset()


async def listen_on_network(host: str, port: int, *, backlog: int, receive_buffer: int) -> SimulatedListening:
    """``broker.network.listening_socket.listen`` on the network of the running loop; any number of clients may wait."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    address = await loop.network.resolve(host)
    listening = SimulatedListening(loop, address)
    listening.port = loop.network.listen(listening, address, port)
    return listening
