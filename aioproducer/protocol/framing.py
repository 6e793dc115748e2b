"""Whole frames: a four-byte size, a header, a message. ``frame_reader.py`` cuts them out of a stream."""

from __future__ import annotations

import struct
from typing import TypeVar, cast, final

from mypy_extensions import i64

from aioproducer.errors import SchemaException, UnsupportedVersionException
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.codec import Decoding, decode, decode_prefix, encode
from aioproducer.protocol.headers import RequestHeader, ResponseHeader
from aioproducer.protocol.messages.api_versions import ApiVersionsResponse
from aioproducer.protocol.schema import ApiMessage, Request, Response

R = TypeVar("R", bound=Response)

_INT32 = struct.Struct(">i")


@final
class RequestFrames:
    """Puts one client's requests into frames.

    What stands before and after the correlation id, which alone differs from request to request, is kept for requests
    of the last kind: nearly all are of one.
    """

    def __init__(self, client_id: str | None) -> None:
        self._client_id = client_id
        self._key: ApiKey | None = None
        self._version: i64 = -1
        self._before = b""
        self._after = b""

    def frame(self, key: ApiKey, version: i64, correlation_id: i64, parts: list[bytes | memoryview]) -> i64:
        """Makes a frame of a message's parts, for ``transport.writelines``: size and header go in front of the first.

        Answers how many bytes it has, with those four that say its size.
        """
        if version != self._version or key is not self._key:
            self._header_of(key, version)
        number: int = correlation_id
        size = len(self._before) + 4 + len(self._after)
        for part in parts:
            size += len(part)
        parts[0] = b"%b%b%b%b%b" % (
            size.to_bytes(4, "big"),
            self._before,
            number.to_bytes(4, "big", signed=True),
            self._after,
            cast(bytes, parts[0]),
        )
        return size + 4

    def _header_of(self, key: ApiKey, version: i64) -> None:
        header_version = 2 if _is_flexible(APIS[key].request, version) else 1
        header = b"".join(encode(RequestHeader(key, version, 0, self._client_id), header_version))
        self._before, self._after = header[:4], header[8:]
        self._key, self._version = key, version


def encode_request(
    request: Request, *, version: int, correlation_id: int, client_id: str | None
) -> list[bytes | memoryview]:
    """The request as a frame, in parts for ``transport.writelines``; the first part begins with the size."""
    parts = encode(request, version)
    _ = RequestFrames(client_id).frame(request.API_KEY, version, correlation_id, parts)
    return parts


def encode_response(response: Response, *, version: int, correlation_id: int) -> list[bytes | memoryview]:
    """The response as a frame, in parts for ``transport.writelines``; the first part begins with the size."""
    return response_frame(type(response), version, correlation_id, encode(response, version))


def response_frame(
    cls: type[Response], version: int, correlation_id: int, parts: list[bytes | memoryview]
) -> list[bytes | memoryview]:
    """Makes a frame of the parts of an encoded response: size and header go in front of the first one."""
    header = b"".join(encode(ResponseHeader(correlation_id), _response_header_version(cls, version)))
    size = len(header) + sum(map(len, parts))
    parts[0] = b"".join((_INT32.pack(size), header, parts[0]))
    return parts


def decode_request_header(frame: bytes | memoryview) -> tuple[RequestHeader, int]:
    """The header of a request, and where its body starts.

    Works for any version of the APIs in ``APIS``, those not spoken here too, so that ApiVersions can be answered with
    ``UNSUPPORTED_VERSION``. Of an unknown API only the fields up to the client id can be read.
    """
    if len(frame) < 4:
        raise SchemaException(f"a request of {len(frame)} bytes")
    key, version = struct.unpack_from(">hh", frame)
    api = APIS.get(key)
    flexible = api is not None and _is_flexible(api.request, version)
    return decode_prefix(RequestHeader, 2 if flexible else 1, frame)


def decode_request(frame: bytes | memoryview) -> tuple[RequestHeader, Request]:
    """A request with its header; ``UnsupportedVersionException`` for an API or a version that is not spoken here."""
    header, pos = decode_request_header(frame)
    if header.api_key not in APIS:
        raise UnsupportedVersionException(f"API {header.api_key} is not known here")
    return header, decode(APIS[ApiKey(header.api_key)].request, header.api_version, frame, pos)


def decode_response(cls: type[R], version: int, frame: bytes | memoryview) -> tuple[int, R]:
    """The correlation id of a response, and the response: ``cls`` in the ``version`` of its request.

    A broker answers an ApiVersions request that is newer than itself in version 0 (KIP-511), so that is tried too.
    """
    header, pos = decode_prefix(ResponseHeader, _response_header_version(cls, version), frame)
    try:
        return header.correlation_id, decode(cls, version, frame, pos)
    except SchemaException:
        if cls.API_KEY is not ApiKey.API_VERSIONS or version == 0:
            raise
        return header.correlation_id, decode(cls, 0, frame, pos)


def decoding_response(cls: type[Response], version: int, frame: bytes | memoryview) -> Decoding:
    """The response behind the header, to be read step by step: for any but ApiVersions, which is never large."""
    _, pos = decode_prefix(ResponseHeader, _response_header_version(cls, version), frame)
    return Decoding(cls, version, frame, pos)


def _response_header_version(cls: type[Response], version: int) -> int:
    # An ApiVersions response must be readable before anything is known about the broker: its header never changes.
    return 1 if _is_flexible(cls, version) and cls is not ApiVersionsResponse else 0


def _is_flexible(message: ApiMessage | type[ApiMessage], version: int) -> bool:
    versions = message.FLEXIBLE_VERSIONS
    return versions.low <= version <= versions.high  # ``in`` would be a call of Python
