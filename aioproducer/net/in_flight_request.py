"""A request on its way to a broker, and whom its end is told. Compiled when there is a compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from mypy_extensions import i64

from aioproducer.errors import KafkaError
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.codec import encode
from aioproducer.protocol.framing import decode_response
from aioproducer.protocol.schema import Request

Handler = Callable[[Any, KafkaError | None], None]
"""Told the response, or the error that ended the request; exactly once."""


class InFlightRequest:
    """What a connection knows of a request: when it was sent, and until when it is waited for (times are the loop's).

    What it says, and what is done with its answer, is a subclass's. It ends exactly once: with ``read`` and then
    ``answered``, or with ``failed``. Subclasses are compiled with it, so that none of these is a call of Python.
    """

    def __init__(self, api_key: ApiKey, version: i64) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id: i64 = 0
        self.sent_at: float = 0.0
        self.deadline: float = 0.0

    @property
    def name(self) -> str:
        return self.api_key.name

    def body(self) -> list[bytes | memoryview]:
        """The message, in parts for ``transport.writelines``."""
        raise NotImplementedError

    def read(self, frame: bytes) -> i64:
        """Reads the answer, header included; ``throttle_time_ms``. SchemaException if it is no answer to this."""
        raise NotImplementedError

    def answered(self) -> None:
        """What was read holds."""
        raise NotImplementedError

    def failed(self, error: KafkaError) -> None:
        """There will be no answer."""
        raise NotImplementedError


@final
class MessageRequest(InFlightRequest):
    """A request that ``codec`` writes, and whose answer it reads."""

    def __init__(self, request: Request, version: i64, handler: Handler) -> None:
        super().__init__(request.API_KEY, version)
        self._request = request
        self._handler = handler
        self._response: Any = None

    def body(self) -> list[bytes | memoryview]:
        return encode(self._request, self.version)

    def read(self, frame: bytes) -> i64:
        _, self._response = decode_response(APIS[self.api_key].response, self.version, frame)
        throttle: i64 = getattr(self._response, "throttle_time_ms", 0)
        return throttle

    def answered(self) -> None:
        self._handler(self._response, None)

    def failed(self, error: KafkaError) -> None:
        self._handler(None, error)
