"""The headers of requests and responses."""

from __future__ import annotations

from aioproducer.protocol.schema import Message, header, int16, int32, string


@header(versions="1-2", flexible="2+")
class RequestHeader(Message):
    """Kafka's names, less the ``Request`` that begins two of them.

    The client id keeps its two-byte length in all versions, so that a broker can read the header of an ApiVersions
    request that is newer than itself.
    """

    api_key: int = int16("0+")
    api_version: int = int16("0+")
    correlation_id: int = int32("0+")
    client_id: str | None = string("1+", nullable="1+", flexible="none")


@header(versions="0-1", flexible="1+")
class ResponseHeader(Message):
    """``correlation_id`` is that of the request."""

    correlation_id: int = int32("0+")
