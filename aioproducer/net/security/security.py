"""The security of a client's connections: TLS, and authentication before any other request."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from aioproducer.configs.client_config import ClientConfig
from aioproducer.errors import KafkaError, SaslAuthenticationException, SslAuthenticationException
from aioproducer.net.addresses import Address
from aioproducer.net.connection.connection import Connection
from aioproducer.net.connection.node_api_versions import NodeApiVersions
from aioproducer.security.sasl import Credentials
from aioproducer.timing.backoff import ExponentialBackoff

# What only SASL needs, and only one of its mechanisms, is imported for the first client that has it.
if TYPE_CHECKING:
    from aioproducer.net.security.sasl_clients import AnyCredentials
    from aioproducer.security.expiring_login import ExpiringLogin
    from aioproducer.security.kerberos.settings import KerberosSettings
    from aioproducer.security.kerberos.tickets import KerberosTicket
    from aioproducer.security.oauth.settings import OAuthSettings
    from aioproducer.security.oauth.token import OAuthBearerToken

# OpenSSL's codes for certificates that no trusted authority has signed, and for those of another name or address.
_UNTRUSTED = (18, 19, 20, 21)
_OF_ANOTHER = (62, 64)


class ClientSecurity:
    """The security of all connections of one client. ``launch(coroutine, name)`` starts its task, if it needs one."""

    def __init__(
        self, config: ClientConfig, random: Random, launch: Callable[[Coroutine[Any, Any, None], str], None]
    ) -> None:
        credentials: Any = config.credentials
        self._tokens: ExpiringLogin[OAuthBearerToken] | None = None
        self._tickets: ExpiringLogin[KerberosTicket] | None = None
        self._credentials: Credentials | None = None
        if config.uses_tokens:
            self._tokens = _token_login(credentials, random, launch)
        elif config.uses_tickets:
            self._tickets = _ticket_login(credentials, random, launch)
        else:
            self._credentials = credentials
        self._authenticates = credentials is not None
        self._tls = config.tls
        self._random = random

    @property
    def is_secure(self) -> bool:
        """Whether there is anything to authenticate."""
        return self._tls is not None or self._authenticates

    async def transport_options(self, address: Address) -> dict[str, Any]:
        """Arguments for ``create_connection`` besides host and port. The certificate must be for the broker's name, not
        for the address it resolved to."""
        return {} if self._tls is None else {"ssl": await self._tls.context(), "server_hostname": address.host}

    async def credentials(self, host: str) -> AnyCredentials | None:
        """What the client authenticates with to a broker at ``host``; None if it does not. An identity provider or a
        KDC may be asked for it, so ask before a connection is made: no broker waits then. Raises :class:`KafkaError` if
        there is no token."""
        if self._tickets is not None:
            from aioproducer.net.security.sasl_clients import GssapiSaslClient

            ticket = await self._tickets.token()
            await asyncio.to_thread(GssapiSaslClient(ticket, host).initial_response)  # caches the service's ticket
            return ticket
        return self._credentials if self._tokens is None else await self._tokens.token()

    async def authenticate(
        self, connection: Connection, versions: NodeApiVersions, credentials: AnyCredentials | None, host: str
    ) -> float | None:
        """Authenticates the client to a broker at ``host``. Returns the seconds until it must re-authenticate; None for
        never.

        Raises :class:`AuthenticationException` if the broker refuses.
        """
        if credentials is None:
            return None
        from aioproducer.net.security.sasl_authenticator import authenticate, reauthenticate_after
        from aioproducer.security.oauth.token import OAuthBearerToken

        try:
            lifetime = await authenticate(connection, versions, credentials, host)
        except SaslAuthenticationException:
            if self._tokens is not None and isinstance(credentials, OAuthBearerToken):
                self._tokens.refused(credentials)
            raise
        if self._tokens is not None:
            self._tokens.accepted()
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


def _token_login(
    settings: OAuthSettings, random: Random, launch: Callable[[Coroutine[Any, Any, None], str], None]
) -> ExpiringLogin[OAuthBearerToken]:
    from aioproducer.security.expiring_login import ExpiringLogin
    from aioproducer.security.oauth.retrieval import retrieval

    backoff = ExponentialBackoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
    limit = settings.limits.total
    return ExpiringLogin(retrieval(settings), settings.window, backoff, limit, random=random, launch=launch)


def _ticket_login(
    settings: KerberosSettings, random: Random, launch: Callable[[Coroutine[Any, Any, None], str], None]
) -> ExpiringLogin[KerberosTicket]:
    from aioproducer.security.expiring_login import TICKET, ExpiringLogin
    from aioproducer.security.kerberos.tickets import LIMIT, Tickets

    return ExpiringLogin(
        Tickets(settings).retrieve,
        settings.window,
        ExponentialBackoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random),
        LIMIT,
        random=random,
        launch=launch,
        kind=TICKET,
    )


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
