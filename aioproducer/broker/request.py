"""One request of a client, from its last byte received to its response written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from aioproducer.protocol.framing import encode_response
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.schema import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aioproducer.protocol.primitives import Buffer


class ResponseChannel(Protocol):
    """Where a request came from and its response goes to."""

    def send_response(self, parts: Sequence[Buffer]) -> None: ...

    def no_operation(self) -> None: ...

    def close(self, reason: str) -> None: ...


class Request:
    """A request being handled. Exactly one of :meth:`respond`, :meth:`no_response` and :meth:`close_connection` ends
    it; they mirror ``SendResponse``, ``NoOpResponse`` and ``CloseConnectionResponse`` of Kafka's ``RequestChannel``.

    Until one of them is called the channel is muted: the client's next request waits.
    """

    __slots__ = ("_abandon", "_channel", "abandoned", "header")

    def __init__(self, header: RequestHeader, channel: ResponseChannel) -> None:
        self.header = header
        self._channel = channel
        self._abandon: Callable[[], object] | None = None
        self.abandoned = False
        """The client is gone: nobody reads a response."""

    def respond(self, response: Response, version: int | None = None) -> None:
        """Answers, in the version that the client asked in unless told otherwise (only ApiVersions is, KIP-511)."""
        header = self.header
        parts = encode_response(
            response,
            version=header.api_version if version is None else version,
            correlation_id=header.correlation_id,
        )
        self._channel.send_response(parts)

    def no_response(self) -> None:
        """Ends a request that has no response (produce with acks=0)."""
        self._channel.no_operation()

    def close_connection(self, reason: str) -> None:
        """Ends a request that cannot be answered otherwise."""
        self._channel.close(reason)

    def on_abandon(self, callback: Callable[[], object]) -> None:
        """``callback`` runs once if the client goes before the request has ended."""
        if self.abandoned:
            callback()
        else:
            self._abandon = callback

    def abandon(self) -> None:
        """The channel says that the client is gone."""
        self.abandoned = True
        callback, self._abandon = self._abandon, None
        if callback is not None:
            callback()
