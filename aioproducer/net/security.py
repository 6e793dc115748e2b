"""How a client's connections are secured: TLS below, and who the client says that it is before anything else."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from random import Random
from typing import Any

from aioproducer.config import ClientConfig
from aioproducer.errors import KafkaError, SslAuthenticationException
from aioproducer.net.addresses import Address
from aioproducer.net.connection import Connection
from aioproducer.net.sasl_authenticator import authenticate, reauthenticate_after


class ClientSecurity:
    """Of all connections of one client."""

    def __init__(self, config: ClientConfig, random: Random) -> None:
        self._credentials = config.credentials
        self._context: ssl.SSLContext | None = config.ssl_context
        self._random = random

    def transport_options(self, address: Address) -> dict[str, Any]:
        """What ``create_connection`` is to be told beside host and port. The certificate has to be that of the name the
        broker is known by, and not of the address that was found for it."""
        return {} if self._context is None else {"ssl": self._context, "server_hostname": address.host}

    async def authenticate(self, connection: Connection, versions: Mapping[int, tuple[int, int]]) -> float | None:
        """Says who the client is. Returns in how many seconds it has to be said again; None for never.

        Raises :class:`AuthenticationException` if the broker does not believe it.
        """
        if self._credentials is None:
            return None
        lifetime = await authenticate(connection, versions, self._credentials)
        return reauthenticate_after(lifetime, self._random) if lifetime > 0 else None

    def refusal(self, peer: str, error: BaseException) -> KafkaError | None:
        """What ``error``, with which a connection ended before it was of use, says of TLS, if it does."""
        found: BaseException | None = error
        while found is not None:
            # One that ends in the middle of its handshake may have had any reason.
            if isinstance(found, ssl.SSLError) and not isinstance(found, ssl.SSLEOFError | ssl.SSLZeroReturnError):
                reason = getattr(found, "verify_message", "") or getattr(found, "reason", "") or str(found)
                return SslAuthenticationException(f"TLS with {peer} failed: {reason}")
            found = found.__cause__
        return None
