"""The security of a client's connections: TLS, and authentication before any other request."""

from __future__ import annotations

import ssl
from random import Random
from typing import Any

from aioproducer.configs.client_config import ClientConfig
from aioproducer.errors import KafkaError, SslAuthenticationException
from aioproducer.net.addresses import Address
from aioproducer.net.connection import Connection
from aioproducer.net.node_api_versions import NodeApiVersions
from aioproducer.net.sasl_authenticator import authenticate, reauthenticate_after

# OpenSSL's codes for certificates that no trusted authority has signed, and for those of another name or address.
_UNTRUSTED = (18, 19, 20, 21)
_OF_ANOTHER = (62, 64)


class ClientSecurity:
    """The security of all connections of one client."""

    def __init__(self, config: ClientConfig, random: Random) -> None:
        self._credentials = config.credentials
        self._context: ssl.SSLContext | None = config.ssl_context
        self._random = random

    @property
    def is_secure(self) -> bool:
        """Whether there is anything to authenticate."""
        return self._context is not None or self._credentials is not None

    def transport_options(self, address: Address) -> dict[str, Any]:
        """Arguments for ``create_connection`` besides host and port. The certificate must be for the broker's name, not
        for the address it resolved to."""
        return {} if self._context is None else {"ssl": self._context, "server_hostname": address.host}

    async def authenticate(self, connection: Connection, versions: NodeApiVersions) -> float | None:
        """Authenticates the client. Returns the seconds until it must re-authenticate; None for never.

        Raises :class:`AuthenticationException` if the broker refuses.
        """
        if self._credentials is None:
            return None
        lifetime = await authenticate(connection, versions, self._credentials)
        return reauthenticate_after(lifetime, self._random) if lifetime > 0 else None

    def refusal(self, peer: str, error: BaseException) -> KafkaError | None:
        """What ``error``, which ended a connection before it was usable, says about TLS, if anything."""
        found: BaseException | None = error
        while found is not None:
            # A connection may end in the middle of its handshake for any reason.
            if isinstance(found, ssl.SSLError) and not isinstance(found, ssl.SSLEOFError | ssl.SSLZeroReturnError):
                reason = getattr(found, "verify_message", "") or getattr(found, "reason", "") or str(found)
                return SslAuthenticationException(f"TLS with {peer} failed: {reason}{_advice(found)}")
            found = found.__cause__
        return None


def _advice(error: ssl.SSLError) -> str:
    """What to do about the error, if known."""
    # Errors that the library did not make itself lack both.
    reason, code = getattr(error, "reason", None) or "", getattr(error, "verify_code", 0)
    if isinstance(error, ssl.SSLCertVerificationError):
        if code in _UNTRUSTED:
            return "; ssl.truststore.location must name an authority that vouches for the broker"
        if code in _OF_ANOTHER:
            return "; connect by a name that is in the broker's certificate (bootstrap.servers, advertised.listeners)"
    elif "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
        return "; the broker wants a certificate that it trusts from this client: see ssl.keystore.location"
    elif reason == "WRONG_VERSION_NUMBER":
        return "; what listens there does not speak TLS: see security.protocol"
    return ""
