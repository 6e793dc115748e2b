"""The notifications that a request sends to its processor when it ends or is throttled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aioproducer.protocol.primitives import Buffer
from aioproducer.protocol.schema import Response


class RequestEnd:
    """A notification from a request to its processor. Kafka's ``RequestChannel.Response``."""

    __slots__ = ()


class SendResponse(RequestEnd):
    """Bytes for the client; the first part begins with the size."""

    __slots__ = ("errors", "parts", "response")

    def __init__(
        self, parts: Sequence[Buffer], response: Response | None = None, errors: Mapping[int, int] | None = None
    ) -> None:
        self.parts = parts
        self.response = response
        """The encoded message; None if the bytes are not a response of this API, or if it is not needed any more."""
        self.errors = errors
        """The ``error_counts`` of the message; None if they have not been counted yet."""


class NoOpResponse(RequestEnd):
    """The request has no response (acks=0): the client's next request may be handled."""

    __slots__ = ()


class CloseConnectionResponse(RequestEnd):
    """Closes the connection, after a last response if there is one. An empty ``reason`` is not logged."""

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
