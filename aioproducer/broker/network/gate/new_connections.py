"""Connections on their way from an acceptor to a processor."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from aioproducer.broker.network.gate.listening_socket import AcceptedSocket

CONNECTION_QUEUE_SIZE = 20
"""New connections that may wait for a processor, and that it takes in one round."""


class NewConnection(NamedTuple):
    """A socket that was accepted, and the client's address."""

    socket: AcceptedSocket
    address: str


class NewConnections:
    """The connections that wait for one processor; ``wakeup`` wakes it (Kafka's ``newConnections``)."""

    def __init__(self, wakeup: Callable[[], object]) -> None:
        self._wakeup = wakeup
        self._waiting: deque[NewConnection] = deque()
        self._room: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def offer(self, socket: AcceptedSocket, address: str) -> bool:
        """Queues an accepted socket; returns False if too many wait already."""
        if self._closed or len(self._waiting) >= CONNECTION_QUEUE_SIZE:
            return False
        self._waiting.append(NewConnection(socket, address))
        self._wakeup()
        return True

    async def has_room(self) -> None:
        """Returns when :meth:`offer` is worth another attempt."""
        room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room.append(room)
        await room

    def take(self) -> NewConnection:
        """The next connection, which leaves the queue."""
        connection = self._waiting.popleft()
        self._wake_acceptor()
        return connection

    @property
    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Accepts no more connections; those that wait may still be taken."""
        self._closed = True
        self._wake_acceptor()

    def _wake_acceptor(self) -> None:
        while self._room:
            room = self._room.popleft()
            if not room.done():
                room.set_result(None)
