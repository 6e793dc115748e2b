"""How a client's connections are secured: by TLS, and by authentication before any other request."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from random import Random
from typing import Any

from aioproducer.client_config import ClientConfig
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

    @property
    def is_secure(self) -> bool:
        """Whether there is anything to authenticate."""
        return self._context is not None or self._credentials is not None

    def transport_options(self, address: Address) -> dict[str, Any]:
        """Arguments for ``create_connection`` besides host and port. The certificate must be for the name by which the
        broker is known, not for the address that was found for it."""
        return {} if self._context is None else {"ssl": self._context, "server_hostname": address.host}

    async def authenticate(self, connection: Connection, versions: Mapping[int, tuple[int, int]]) -> float | None:
        """Authenticates the client. Returns after how many seconds it must re-authenticate; None for never.

        Raises :class:`AuthenticationException` if the broker refuses.
        """
        if self._credentials is None:
            return None
        lifetime = await authenticate(connection, versions, self._credentials)
        return reauthenticate_after(lifetime, self._random) if lifetime > 0 else None

    def refusal(self, peer: str, error: BaseException) -> KafkaError | None:
        """What ``error``, with which a connection ended before it was usable, says about TLS, if anything."""
        found: BaseException | None = error
        while found is not None:
            # A connection that ends in the middle of its handshake may have any cause.
            if isinstance(found, ssl.SSLError) and not isinstance(found, ssl.SSLEOFError | ssl.SSLZeroReturnError):
                reason = getattr(found, "verify_message", "") or getattr(found, "reason", "") or str(found)
                return SslAuthenticationException(f"TLS with {peer} failed: {reason}")
            found = found.__cause__
        return None
