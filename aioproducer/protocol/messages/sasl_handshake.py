"""SaslHandshake: which mechanism a client is going to use (KIP-43)."""

from __future__ import annotations

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.schema import STRING, Request, Response, array, int16, message, string


@message(ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none")
class SaslHandshakeRequest(Request):
    mechanism: str = string("0+")


@message(ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none")
class SaslHandshakeResponse(Response):
    error_code: int = int16("0+")
    mechanisms: list[str] = array(STRING, "0+")
