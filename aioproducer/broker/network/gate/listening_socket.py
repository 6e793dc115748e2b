"""A port on which clients connect."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable
from functools import partial
from typing import Protocol

from aioproducer.process.descriptors import RESERVED, is_reserved
from aioproducer.tasks.own_thread import in_own_thread

Address = tuple[str, int]


class AcceptedSocket(Protocol):
    """A socket that the loop's ``connect_accepted_socket`` accepts."""

    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...

    def close(self) -> None: ...


class Listening(Protocol):
    """An open port."""

    @property
    def port(self) -> int: ...

    async def accept(self) -> tuple[AcceptedSocket, Address]:
        """The next connection and its peer's address. Cancelling it loses no connection."""

    def close(self) -> None: ...


class Listen(Protocol):
    """Opens ports: :func:`listen`, or the simulation's."""

    def __call__(self, host: str, port: int, *, backlog: int, receive_buffer: int) -> Awaitable[Listening]: ...


class ListeningSocket:
    """A port of this machine."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._is_waiting = False

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    async def accept(self) -> tuple[AcceptedSocket, Address]:
        # Not the loop's sock_accept: a cancellation at the wrong moment loses a connection that it has accepted.
        while True:
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                await self._until_ready()
            else:
                if is_reserved(accepted.fileno()):
                    accepted.close()
                    problem = os.strerror(errno.EMFILE)
                    raise OSError(errno.EMFILE, f"{problem}: the last {RESERVED} are reserved for files")
                accepted.setblocking(False)
                return accepted, (str(address[0]), int(address[1]))

    async def _until_ready(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._socket, _settle, ready)
        self._is_waiting = True
        try:
            await ready
        finally:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            asyncio.get_running_loop().remove_reader(self._socket)

    def close(self) -> None:
        self._stop_waiting()
        self._socket.close()


async def listen(host: str, port: int, *, backlog: int, receive_buffer: int) -> Listening:
    """Opens a port of this machine; 0 picks a free one. ``receive_buffer`` -1 leaves that size to the system.

    Raises :class:`OSError`, which names host and port.
    """
    # Only the first address: with port 0, several addresses would get different ports.
    found = await in_own_thread("aioproducer-listen", partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM))
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer >= 0:
            # Before listen, because TCP negotiates the window while it connects.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.bind(address)
        sock.listen(backlog)
    except BaseException as error:
        sock.close()
        if isinstance(error, OSError):
            raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
        raise
    return ListeningSocket(sock)


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
