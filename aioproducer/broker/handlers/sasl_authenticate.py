"""SaslAuthenticate: versions 0 to 2 (KIP-152); from 1 on the client hears how long its session lasts (KIP-368)."""

from __future__ import annotations

from aioproducer.broker.handlers.authentication_failure import fail
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 2)


def handle(
    context: BrokerContext, request: Request, message: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | None:
    authenticator = request.connection.authenticator
    if authenticator is None:
        return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, "this listener has no SASL")
    response = authenticator.authenticate(message.auth_bytes, context.clock.monotonic())
    if not authenticator.failed:
        return response
    fail(context, request, response, f"its authentication by {authenticator.mechanism} failed{authenticator.why}")
    return None
