"""A client says who it is: the exchange with a broker, before any other request and again when the session is about to
end (KIP-43, KIP-152, KIP-368)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random

from aioproducer.error_code import ErrorCode
from aioproducer.errors import UnsupportedSaslMechanismException, error_for, with_advice
from aioproducer.net.connection import Connection
from aioproducer.net.sasl_clients import SaslClient, sasl_client
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from aioproducer.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from aioproducer.sasl import Credentials

HANDSHAKE_VERSION = 1
"""With it tokens come in SaslAuthenticate, as brokers since 1.0 have it."""


async def authenticate(
    connection: Connection, versions: Mapping[int, tuple[int, int]], credentials: Credentials
) -> float:
    """Returns for how many seconds it holds; 0 for ever. ``versions`` is what the broker speaks.

    Raises :class:`AuthenticationException` if the broker does not accept it. No other request may go out meanwhile.
    """
    newest = versions.get(ApiKey.SASL_AUTHENTICATE, (0, -1))[1]
    if newest < 0 or versions.get(ApiKey.SASL_HANDSHAKE, (0, -1))[1] < HANDSHAKE_VERSION:
        raise UnsupportedSaslMechanismException(f"{connection.peer} does not speak SaslAuthenticate (Kafka 1.0)")
    mechanism = credentials.mechanism
    told = await connection.call(SaslHandshakeRequest(mechanism), SaslHandshakeResponse, HANDSHAKE_VERSION)
    if told.error_code != ErrorCode.NONE:
        enabled = f"; it has {', '.join(told.mechanisms)}" if told.mechanisms else ""
        raise error_for(
            told.error_code, f"{connection.peer} refused {mechanism}{enabled}: {with_advice('', told.error_code)}"
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
                f"{connection.peer} did not accept user {credentials.username!r} by {mechanism}: {words}",
            )
        token = await _next_token(client, answer.auth_bytes)
    return answer.session_lifetime_ms / 1000


async def _next_token(client: SaslClient, challenge: bytes) -> bytes | None:
    if client.is_slow:
        return await asyncio.to_thread(client.evaluate_challenge, challenge)
    return client.evaluate_challenge(challenge)


def reauthenticate_after(lifetime: float, random: Random) -> float:
    """How many seconds after its beginning a session of ``lifetime`` seconds is renewed: 85 to 95 % of it, so that the
    network and clocks that differ leave time enough, and not all clients come at once. As Kafka's clients do."""
    return lifetime * (0.85 + 0.10 * random.random())
