"""Ends a failed TLS handshake with its alert, so that the client learns why it failed.

Event loops write nothing once a handshake has failed. The client would see a lost connection instead of a refused
certificate, and try again. So a failed handshake claims to wait for the client, and the loop writes the alert. The
connection ends when the client closes it, sends anything else, or exceeds a deadline.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from aioproducer.security.tls.suites import CheckingObject

_TO_READ_IT = 1.0
"""Seconds that a client has to read the alert and to disconnect."""


async def accept_tls(
    loop: asyncio.AbstractEventLoop,
    protocol: Callable[[], asyncio.BaseProtocol],
    accepted: Any,
    options: dict[str, Any],
) -> None:
    """Calls the loop's ``connect_accepted_socket`` with an :class:`AlertingContext`. Raises OSError; it is an
    :class:`ssl.SSLError` if an alert was sent."""
    handshake = _Handshake()
    _CURRENT.set(handshake)
    try:
        async with asyncio.timeout(None) as handshake.deadline:
            await loop.connect_accepted_socket(protocol, accepted, **options)
    except OSError as lost:
        raise handshake.error or lost from None
    finally:
        handshake.deadline = None  # its references would live as long as the connection


class _Handshake:
    """The handshake of the connection that the current task sets up."""

    def __init__(self) -> None:
        self.deadline: asyncio.Timeout | None = None
        self.error: ssl.SSLError | None = None

    def failed(self, error: ssl.SSLError) -> None:
        """The handshake has failed, and its alert is about to be written."""
        self.error = error
        if self.deadline is not None:
            self.deadline.reschedule(asyncio.get_running_loop().time() + _TO_READ_IT)


_CURRENT: ContextVar[_Handshake] = ContextVar("handshake")


class _AlertingObject(CheckingObject):
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
    """The TLS context of a server whose connections are set up by :func:`accept_tls`."""

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
