"""Authentication of a client: the exchange with a broker, before any other request and again when the session is about
to end (KIP-43, KIP-152, KIP-368)."""

from __future__ import annotations

import asyncio
import time
from random import Random

from aioproducer.error_code import ErrorCode
from aioproducer.errors import UnsupportedSaslMechanismException, error_for, with_advice
from aioproducer.net.connection import Connection
from aioproducer.net.node_api_versions import NodeApiVersions
from aioproducer.net.sasl_clients import SaslClient, sasl_client
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from aioproducer.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from aioproducer.security.oauth.token import OAuthBearerToken
from aioproducer.security.sasl import OAUTHBEARER, Credentials

HANDSHAKE_VERSION = 1
"""From this version on, tokens are sent in SaslAuthenticate, which brokers have since 1.0."""


async def authenticate(
    connection: Connection, versions: NodeApiVersions, credentials: Credentials | OAuthBearerToken
) -> float:
    """Authenticates; returns the session's lifetime in seconds, 0 for no limit. ``versions`` are the broker's.

    Raises :class:`AuthenticationException` if the broker refuses. No other request may be sent meanwhile.
    """
    newest = versions.newest(ApiKey.SASL_AUTHENTICATE)
    if newest < 0 or versions.newest(ApiKey.SASL_HANDSHAKE) < HANDSHAKE_VERSION:
        raise UnsupportedSaslMechanismException(f"{connection.peer} does not speak SaslAuthenticate (Kafka 1.0)")
    mechanism = OAUTHBEARER if isinstance(credentials, OAuthBearerToken) else credentials.mechanism
    handshake = await connection.call(SaslHandshakeRequest(mechanism), SaslHandshakeResponse, HANDSHAKE_VERSION)
    if handshake.error_code != ErrorCode.NONE:
        enabled = f"; it has {', '.join(handshake.mechanisms)}" if handshake.mechanisms else ""
        raise error_for(
            handshake.error_code,
            f"{connection.peer} refused {mechanism}{enabled}: {with_advice('', handshake.error_code)}",
        )
    client = sasl_client(credentials)
    version = min(newest, SaslAuthenticateRequest.MAX_VERSION)
    token: bytes | None = client.initial_response()
    while token is not None:
        answer = await connection.call(SaslAuthenticateRequest(token), SaslAuthenticateResponse, version)
        if answer.error_code != ErrorCode.NONE:
            words = with_advice(answer.error_message or "", answer.error_code)
            raise error_for(
                answer.error_code,
                f"{connection.peer} did not accept {_claim(credentials)} by {mechanism}: {words}",
            )
        token = await _next_token(client, answer.auth_bytes)
    return answer.session_lifetime_ms / 1000


def _claim(credentials: Credentials | OAuthBearerToken) -> str:
    if isinstance(credentials, Credentials):
        return f"user {credentials.username!r}"
    whose = f" of {credentials.principal!r}" if credentials.principal else ""
    return f"the token{whose} ({credentials.described(time.time())})"


async def _next_token(client: SaslClient, challenge: bytes) -> bytes | None:
    if client.is_slow:
        return await asyncio.to_thread(client.evaluate_challenge, challenge)
    return client.evaluate_challenge(challenge)


def reauthenticate_after(lifetime: float, random: Random) -> float:
    """When to renew a session of ``lifetime`` seconds: after 85 to 95 % of it, as Kafka's clients do. That leaves time
    for the network and for clocks that differ, and spreads the clients."""
    return lifetime * (0.85 + 0.10 * random.random())
