"""Authentication of a client: the exchange with a broker, before any other request and again when the session is about
to end (KIP-43, KIP-152, KIP-368)."""

from __future__ import annotations

import asyncio
import time
from random import Random

from aioproducer.errors import UnsupportedSaslMechanismException, error_for, with_advice
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.connection.connection import Connection
from aioproducer.net.connection.node_api_versions import NodeApiVersions
from aioproducer.net.security.sasl_clients import AnyCredentials, SaslClient, mechanism_of, sasl_client
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from aioproducer.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from aioproducer.security.kerberos.tickets import KerberosTicket
from aioproducer.security.sasl import Credentials

HANDSHAKE_VERSION = 1
"""From this version on, tokens are sent in SaslAuthenticate, which brokers have since 1.0."""


async def authenticate(
    connection: Connection, versions: NodeApiVersions, credentials: AnyCredentials, host: str
) -> float:
    """Authenticates to the broker at ``host``, which has these ``versions``. Returns the session's lifetime in seconds,
    0 for no limit.

    Raises :class:`AuthenticationException` if the broker refuses. No other request may be sent meanwhile.
    """
    newest = versions.newest(ApiKey.SASL_AUTHENTICATE)
    if newest < 0 or versions.newest(ApiKey.SASL_HANDSHAKE) < HANDSHAKE_VERSION:
        raise UnsupportedSaslMechanismException(f"{connection.peer} does not speak SaslAuthenticate (Kafka 1.0)")
    mechanism = mechanism_of(credentials)
    handshake = await connection.call(SaslHandshakeRequest(mechanism), SaslHandshakeResponse, HANDSHAKE_VERSION)
    if handshake.error_code != ErrorCode.NONE:
        enabled = f"; it has {', '.join(handshake.mechanisms)}" if handshake.mechanisms else ""
        raise error_for(
            handshake.error_code,
            f"{connection.peer} refused {mechanism}{enabled}: {with_advice('', handshake.error_code)}",
        )
    client = sasl_client(credentials, host)
    version = min(newest, SaslAuthenticateRequest.MAX_VERSION)
    token: bytes | None = await _first_token(client)
    while token is not None:
        answer = await connection.call(SaslAuthenticateRequest(token), SaslAuthenticateResponse, version)
        if answer.error_code != ErrorCode.NONE:
            words = with_advice(answer.error_message or "", answer.error_code) + _advice(credentials)
            raise error_for(
                answer.error_code,
                f"{connection.peer} did not accept {_claim(credentials)} by {mechanism}: {words}",
            )
        token = await _next_token(client, answer.auth_bytes)
    return answer.session_lifetime_ms / 1000


def _claim(credentials: AnyCredentials) -> str:
    if isinstance(credentials, Credentials):
        return f"user {credentials.username!r}"
    if isinstance(credentials, KerberosTicket):
        return f"the ticket {credentials.described(time.time())},"
    whose = f" of {credentials.principal!r}" if credentials.principal else ""
    return f"the token{whose} ({credentials.described(time.time())})"


def _advice(credentials: AnyCredentials) -> str:
    """Kafka does not say why it refuses a ticket."""
    if not isinstance(credentials, KerberosTicket):
        return ""
    return "; the broker's keytab may have an old key, or the clocks of broker, KDC and client differ by over 5 minutes"


async def _first_token(client: SaslClient) -> bytes:
    return await asyncio.to_thread(client.initial_response) if client.is_slow else client.initial_response()


async def _next_token(client: SaslClient, challenge: bytes) -> bytes | None:
    if client.is_slow:
        return await asyncio.to_thread(client.evaluate_challenge, challenge)
    return client.evaluate_challenge(challenge)


def reauthenticate_after(lifetime: float, random: Random) -> float:
    """When to renew a session of ``lifetime`` seconds: after 85 to 95 % of it, as Kafka's clients do. That leaves time
    for the network and for clocks that differ, and spreads the clients."""
    return lifetime * (0.85 + 0.10 * random.random())
