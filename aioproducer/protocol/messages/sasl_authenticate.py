"""SaslAuthenticate: the mechanism's own messages, there and back (KIP-152), and how long a session lasts (KIP-368)."""

from __future__ import annotations

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.schema import Request, Response, int16, int64, message, secret_bytes, string


@message(ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateRequest(Request):
    auth_bytes: bytes = secret_bytes("0+")


@message(ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Response):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    auth_bytes: bytes = secret_bytes("0+")
    session_lifetime_ms: int = int64("1+", ignorable=True)
