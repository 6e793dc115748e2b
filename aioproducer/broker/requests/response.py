"""What a handler makes of a request, on its way to the processor that the request came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aioproducer.broker.requests.request import Request
    from aioproducer.protocol.primitives import Buffer
    from aioproducer.protocol.schema import Response


class RequestEnd:
    """Whatever a processor is told of a request. Kafka's ``RequestChannel.Response``."""

    __slots__ = ("request",)

    def __init__(self, request: Request) -> None:
        self.request = request


class SendResponse(RequestEnd):
    """Bytes for the client; the first part begins with the size."""

    __slots__ = ("parts", "response")

    def __init__(self, request: Request, parts: Sequence[Buffer], response: Response | None = None) -> None:
        self.request = request
        self.parts = parts
        self.response = response
        """What they were made of; None if they are no response of this API."""


class NoOpResponse(RequestEnd):
    """The request has no response (acks=0): the client's next one may come."""

    __slots__ = ()


class CloseConnectionResponse(RequestEnd):
    """The request cannot be answered otherwise than by closing the connection, after its last words if it has any."""

    __slots__ = ("parts", "reason", "response")

    def __init__(
        self, request: Request, reason: str, parts: Sequence[Buffer] = (), response: Response | None = None
    ) -> None:
        self.request = request
        self.reason = reason
        self.parts = parts
        self.response = response


class StartThrottlingResponse(RequestEnd):
    """The client is over its quota: nothing more is read from it. Ends nothing."""

    __slots__ = ()


class EndThrottlingResponse(RequestEnd):
    """It has been quiet for long enough. Ends nothing."""

    __slots__ = ()
