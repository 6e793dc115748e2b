"""How a handshake ends that a client does not pass: with the alert that TLS has for it.

Event loops write nothing any more once a handshake has failed. The client would see a connection that is lost, and try
again, in place of a certificate that is refused. So a handshake that has failed is shown to the loop as one that waits
for the client: then its alert is written. The client's end, whatever else it sends, or a deadline end the connection.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

_TO_READ_IT = 1.0
"""Seconds that a client has to read the alert, and to go by itself."""


async def accept_tls(
    loop: asyncio.AbstractEventLoop,
    protocol: Callable[[], asyncio.BaseProtocol],
    accepted: Any,
    options: dict[str, Any],
) -> None:
    """The loop's ``connect_accepted_socket`` with an :class:`AlertingContext`. Raises OSError; :class:`ssl.SSLError` is
    what the client received, if anything."""
    handshake = _Handshake()
    _CURRENT.set(handshake)
    try:
        async with asyncio.timeout(None) as handshake.deadline:
            await loop.connect_accepted_socket(protocol, accepted, **options)
    except OSError as lost:
        raise handshake.error or lost from None
    finally:
        handshake.deadline = None  # what it holds would live as long as the connection


class _Handshake:
    """That of the connection that a task makes."""

    def __init__(self) -> None:
        self.deadline: asyncio.Timeout | None = None
        self.error: ssl.SSLError | None = None

    def failed(self, error: ssl.SSLError) -> None:
        """An alert is on its way."""
        self.error = error
        if self.deadline is not None:
            self.deadline.reschedule(asyncio.get_running_loop().time() + _TO_READ_IT)


_CURRENT: ContextVar[_Handshake] = ContextVar("handshake")


class _AlertingObject(ssl.SSLObject):
    outgoing: ssl.MemoryBIO
    handshake: _Handshake

    def do_handshake(self) -> None:
        if self.handshake.error is not None:
            raise self.handshake.error
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            if not self.outgoing.pending:
                raise
            self.handshake.failed(error)
            raise ssl.SSLWantReadError from error


class AlertingContext(ssl.SSLContext):
    """Of a server whose connections are made by :func:`accept_tls`."""

    sslobject_class = _AlertingObject

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, _AlertingObject)
        made.outgoing, made.handshake = outgoing, _CURRENT.get()
        return made
