"""How a request ends, or is throttled: what the request sends to the processor that it came from."""

from __future__ import annotations

from collections.abc import Sequence

from aioproducer.protocol.primitives import Buffer
from aioproducer.protocol.schema import Response


class RequestEnd:
    """Anything a request sends to its processor. Kafka's ``RequestChannel.Response``."""

    __slots__ = ()


class SendResponse(RequestEnd):
    """Bytes for the client; the first part begins with the size."""

    __slots__ = ("parts", "response")

    def __init__(self, parts: Sequence[Buffer], response: Response | None = None) -> None:
        self.parts = parts
        self.response = response
        """The message that the bytes encode; None if they are no response of this API."""


class NoOpResponse(RequestEnd):
    """The request has no response (acks=0): the client's next request may be handled."""

    __slots__ = ()


class CloseConnectionResponse(RequestEnd):
    """The connection is closed, after a last response if there is one. Without a ``reason`` nothing is logged."""

    __slots__ = ("parts", "reason", "response")

    def __init__(self, reason: str, parts: Sequence[Buffer] = (), response: Response | None = None) -> None:
        self.reason = reason
        self.parts = parts
        self.response = response


class StartThrottlingResponse(RequestEnd):
    """The client exceeds its quota: its connection is not read. The request has not ended."""

    __slots__ = ()


class EndThrottlingResponse(RequestEnd):
    """The throttle time is over. The request has not ended."""

    __slots__ = ()
