"""Scripted brokers whose clients authenticate with PLAIN."""

from __future__ import annotations

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from aioproducer.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.support.scripted_broker import Exchange, ScriptedBroker

AS_ALICE = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.plain.username": "alice",
    "sasl.plain.password": "secret",
}


def authenticates_clients(broker: ScriptedBroker, *, accepts: bool = True, session_ms: int = 0) -> None:
    """Sets the broker's answer to all later authentications."""

    async def handshake(exchange: Exchange) -> None:
        exchange.reply(SaslHandshakeResponse(mechanisms=["PLAIN"]))

    async def judge(exchange: Exchange) -> None:
        code = ErrorCode.NONE if accepts else ErrorCode.SASL_AUTHENTICATION_FAILED
        exchange.reply(SaslAuthenticateResponse(code, session_lifetime_ms=session_ms))

    broker.always(ApiKey.SASL_HANDSHAKE, handshake)
    broker.always(ApiKey.SASL_AUTHENTICATE, judge)
