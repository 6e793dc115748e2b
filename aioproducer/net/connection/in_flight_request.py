"""A request on its way to a broker, and the callback for its outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from mypy_extensions import i64

from aioproducer.errors import KafkaError
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.codec import Decoding, encode
from aioproducer.protocol.framing import decode_response, decoding_response
from aioproducer.protocol.schema import Request

AT_ONCE: Final = 8192
"""Bytes of an answer that are read in one go."""

Handler = Callable[[Any, KafkaError | None], None]
"""Receives the response, or the error that ended the request; called exactly once."""


class InFlightRequest:
    """A connection's view of a request: when it was sent, and how long to wait for its answer (times are the loop's).

    Subclasses define its message and handle its answer. It ends exactly once: with ``read`` and then ``answered`` until
    that is done, or with ``failed`` until that is. Subclasses are compiled with it, so that none of these is a call of
    Python.
    """

    def __init__(self, api_key: ApiKey, version: i64) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id: i64 = 0
        self.sent_at: float = 0.0
        self.deadline: float = 0.0
        self.decoding: Decoding | None = None
        """The large answer that is being read."""

    @property
    def name(self) -> str:
        return self.api_key.name

    def body(self) -> list[bytes | memoryview]:
        """The message, in parts for ``transport.writelines``."""
        raise NotImplementedError

    def read(self, frame: bytes) -> i64:
        """Reads the answer, header included; ``throttle_time_ms``. SchemaException if it is no answer to this."""
        raise NotImplementedError

    def begin_reading(self, frame: bytes | memoryview) -> bool:
        """Begins to read an answer of more than ``AT_ONCE`` bytes step by step, by setting ``decoding``; False if
        ``read`` is to do it."""
        return False

    def read_on(self) -> i64:
        """A step; what ``read`` answers if it was the last, otherwise -1."""
        decoding = self.decoding
        if decoding is None or not decoding.step():
            return -1
        self.decoding = None
        return self.decoded(decoding.message)

    def decoded(self, response: Any) -> i64:
        """Takes the answer that ``codec`` has read; ``throttle_time_ms``."""
        raise NotImplementedError

    def answered(self) -> bool:
        """Handles what was read, for one turn of the loop. Returns whether it is done; if not, the next call
        continues."""
        raise NotImplementedError

    def failed(self, error: KafkaError) -> bool:
        """There will be no answer. Handles that, for one turn of the loop, as ``answered`` does."""
        raise NotImplementedError


@final
class MessageRequest(InFlightRequest):
    """A request that ``codec`` writes, and whose answer it reads."""

    def __init__(
        self, request: Request, version: i64, handler: Handler, body: list[bytes | memoryview] | None = None
    ) -> None:
        """``body`` is what ``codec`` makes of the request, if that is done."""
        super().__init__(request.API_KEY, version)
        self._request = request
        self._body = body
        self._handler = handler
        self._response: Any = None

    def body(self) -> list[bytes | memoryview]:
        return encode(self._request, self.version) if self._body is None else self._body

    def read(self, frame: bytes) -> i64:
        _, response = decode_response(APIS[self.api_key].response, self.version, frame)
        return self.decoded(response)

    def begin_reading(self, frame: bytes | memoryview) -> bool:
        if self.api_key == ApiKey.API_VERSIONS:
            return False
        self.decoding = decoding_response(APIS[self.api_key].response, self.version, frame)
        return True

    def decoded(self, response: Any) -> i64:
        self._response = response
        throttle: i64 = getattr(response, "throttle_time_ms", 0)
        return max(throttle, 0)

    def answered(self) -> bool:
        self._handler(self._response, None)
        return True

    def failed(self, error: KafkaError) -> bool:
        self._handler(None, error)
        return True
