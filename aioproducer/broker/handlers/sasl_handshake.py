"""SaslHandshake: version 1 (KIP-43, KIP-152). Version 0 would be followed by bare tokens: clients since Kafka 1.0 send
them in SaslAuthenticate."""

from __future__ import annotations

from aioproducer.broker.handlers.authentication_failure import fail
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(1, 1)


def handle(context: BrokerContext, request: Request, message: SaslHandshakeRequest) -> SaslHandshakeResponse | None:
    authenticator = request.connection.authenticator
    if authenticator is None:
        return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)
    response = authenticator.handshake(message.mechanism, context.clock.monotonic())
    if not authenticator.failed:
        return response
    fail(context, request, response, "its SASL mechanism is not enabled (sasl.enabled.mechanisms)")
    return None
