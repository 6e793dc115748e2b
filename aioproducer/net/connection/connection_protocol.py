"""The asyncio protocol of a connection."""

from __future__ import annotations

import asyncio

from aioproducer.net.connection.connection import Connection

_CALLS = (
    "connection_made",
    "get_buffer",
    "buffer_updated",
    "eof_received",
    "connection_lost",
    "pause_writing",
    "resume_writing",
)


class ConnectionProtocol(asyncio.BufferedProtocol):
    """A connection as the ``BufferedProtocol`` that asyncio wants, which a compiled class cannot be.

    Its methods are the connection's own, so no call is forwarded.
    """

    def __init__(self, connection: Connection) -> None:
        vars(self).update({name: getattr(connection, name) for name in _CALLS})
