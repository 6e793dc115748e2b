"""A node's listener."""

from __future__ import annotations

import asyncio
import socket

from aioproducer.broker.processor import Processor

_TURNS = 100


class SocketServer:
    """Accepts connections (asyncio's server does) for one :class:`Processor`. Opened and closed once."""

    def __init__(self, processor: Processor) -> None:
        self._processor = processor
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int) -> int:
        """Listens on ``host:port`` (0: a free one) and returns the port."""
        loop = asyncio.get_running_loop()
        # One address only: a name with several would get several free ports.
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        address = str(found[0][4][0])
        self._server = await loop.create_server(self._processor.open_channel, address, port, backlog=50)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Stops accepting and drops every connection."""
        if self._server is not None:
            # In CPython 3.11 and early 3.12 a server that is closed forgets the socket of a connection it is accepting.
            for _ in range(_TURNS):
                if not any(map(_is_accepting, asyncio.all_tasks())):
                    break
                await asyncio.sleep(0)
            self._server.close()
            await self._processor.close()
            await self._server.wait_closed()
            self._server = None


def _is_accepting(task: asyncio.Task[object]) -> bool:
    return getattr(task.get_coro(), "__name__", "") == "_accept_connection2"
