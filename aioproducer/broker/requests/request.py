"""One request of a client, from its last byte received to its response written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from aioproducer.broker.requests.error_counts import counting_errors
from aioproducer.broker.requests.response import (
    CloseConnectionResponse,
    EndThrottlingResponse,
    NoOpResponse,
    RequestEnd,
    SendResponse,
    StartThrottlingResponse,
)
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.codec import Encoding
from aioproducer.protocol.framing import encode_response, response_frame
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.schema import Response

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from aioproducer.broker.security.sasl_server_authenticator import SaslServerAuthenticator
    from aioproducer.protocol.primitives import Buffer


class ResponseChannel(Protocol):
    """Takes responses, and the callbacks of deferred requests."""

    def send_response(self, request: Request, response: RequestEnd) -> None: ...

    def send_callback(self, request: Request, fun: Callable[[], object]) -> None: ...

    def call_now(self, request: Request, fun: Callable[[], object]) -> None: ...


class Quotas(Protocol):
    """Throttles clients; see ``QuotaManagers``."""

    def answer(self, request: Request, response: Response) -> Response:
        """Called before a request is answered. Returns the response to send instead of ``response``."""

    def no_answer(self, request: Request) -> None:
        """Called when a request ends without a response."""

    def lost(self, connection: Connection) -> None:
        """Called when the client of a connection has disconnected."""


class ClientSoftware(NamedTuple):
    """The software of a client, as it describes itself (KIP-511)."""

    name: str
    version: str


class Connection(Protocol):
    """The connection of a request."""

    @property
    def id(self) -> str:
        """``local-remote-index``; the index makes it unique when a port is used again."""

    @property
    def listener(self) -> str: ...

    @property
    def address(self) -> str:
        """The address of the client, without the port."""

    @property
    def user(self) -> str:
        """The name of the client's user."""

    @property
    def security_protocol(self) -> str:
        """The security protocol of the listener, by Kafka's name."""

    @property
    def authenticator(self) -> SaslServerAuthenticator | None:
        """Authenticates the client; None on a listener without SASL."""

    software: ClientSoftware | None
    """None if the client has not described itself."""

    def release(self, size: int) -> None:
        """Releases the memory of a request of this size."""


class Request:
    """A request being handled. Exactly one of :meth:`respond`, :meth:`no_response` and :meth:`close_connection` ends
    it. Until then the channel is muted: the client's next request waits.

    Its times are seconds of the broker's clock, or -1 before they are known: ``start_time`` (T0: all bytes have
    arrived), ``request_dequeue_time`` (T1: a handler takes the request), ``api_local_complete_time`` (T2: the handler
    returns), ``response_complete_time`` (T3: the response is ready), ``response_dequeue_time`` (T4: the processor takes
    the response).
    """

    __slots__ = (
        "_abandon",
        "_abandoned",
        "_channel",
        "_in_slices",
        "_is_held",
        "_over",
        "_throttled",
        "api_local_complete_time",
        "body_at",
        "connection",
        "frame",
        "header",
        "processor",
        "quotas",
        "request_dequeue_time",
        "response_complete_time",
        "response_dequeue_time",
        "size",
        "start_time",
        "throttle_time_ms",
    )

    def __init__(
        self,
        header: RequestHeader,
        channel: ResponseChannel,
        connection: Connection,
        frame: bytes | memoryview = b"",
        body_at: int = 0,
        *,
        processor: int = -1,
        start_time: float = 0.0,
        quotas: Quotas | None = None,
    ) -> None:
        self.header = header
        self.processor = processor
        self.connection = connection
        self.frame = frame
        """The request's bytes without the size; empty after it has been handled."""
        self.body_at = body_at
        self.size = len(frame)
        self.quotas = quotas
        self._channel = channel
        self._abandon: Callable[[], object] | None = None
        self._over: Callable[[], object] | None = None
        self._throttled: Callable[[], object] | None = None
        self._abandoned = False
        self._is_held = False
        self._in_slices: Callable[[Request, Generator[None, None, None]], object] | None = None
        self.throttle_time_ms = 0
        self.start_time = start_time
        self.request_dequeue_time = -1.0
        self.api_local_complete_time = -1.0
        self.response_complete_time = -1.0
        self.response_dequeue_time = -1.0

    @property
    def abandoned(self) -> bool:
        """The client has disconnected."""
        return self._abandoned

    def respond(self, response: Response, version: int | None = None) -> None:
        """Answers in the request's version, or in ``version`` (ApiVersions only, KIP-511)."""
        if self.quotas is not None:
            response = self.quotas.answer(self, response)
        if version is None:
            version = self.header.api_version
        if self._in_slices is not None:
            self._in_slices(self, self._encoding(response, version))
        else:
            self._channel.send_response(self, SendResponse(self._encoded(response, version), response))

    def _encoding(self, response: Response, version: int) -> Generator[None, None, None]:
        body = yield from Encoding(response, version).steps()
        parts = response_frame(type(response), version, self.header.correlation_id, body)
        errors = yield from counting_errors(response)
        # A client may read its response late. Then its bytes take memory, and not the message, which takes much more.
        kept = response if response.API_KEY is ApiKey.FETCH else None
        self._channel.send_response(self, SendResponse(parts, kept, errors))

    def took_long(self, in_slices: Callable[[Request, Generator[None, None, None]], object]) -> None:
        """Has the steps that encode the response done by ``in_slices``, because they may take long, too."""
        self._in_slices = in_slices

    def _encoded(self, response: Response, version: int) -> Sequence[Buffer]:
        return encode_response(response, version=version, correlation_id=self.header.correlation_id)

    def respond_bytes(self, parts: Sequence[Buffer]) -> None:
        """Answers with an encoded frame."""
        self._channel.send_response(self, SendResponse(parts))

    def no_response(self) -> None:
        """Ends a request that has no response (produce with acks=0)."""
        if self.quotas is not None:
            self.quotas.no_answer(self)
        self._channel.send_response(self, NoOpResponse())

    def close_connection(self, reason: str, response: Response | None = None) -> None:
        """Ends the request and closes its connection, after a last ``response`` if there is one. Logs the ``reason``
        unless it is empty."""
        parts = () if response is None else self._encoded(response, self.header.api_version)
        self._channel.send_response(self, CloseConnectionResponse(reason, parts, response))

    def call_back(self, fun: Callable[[], object]) -> None:
        """Makes a handler call ``fun`` before new requests. An exception ends the request as if the handler had raised
        it (Kafka's ``wrapAsyncCallback``)."""
        self._channel.send_callback(self, fun)

    def call_now(self, fun: Callable[[], object]) -> None:
        """Calls ``fun`` at once, as a handler would; see :meth:`call_back`. Does nothing once the node has stopped."""
        self._channel.call_now(self, fun)

    def start_throttling(self) -> None:
        """Delays the client's next request until :meth:`end_throttling`. Called before the request ends (KIP-219)."""
        self._channel.send_response(self, StartThrottlingResponse())

    def end_throttling(self) -> None:
        self._channel.send_response(self, EndThrottlingResponse())

    def when_throttled(self, callback: Callable[[], object]) -> None:
        """Sets a callback for when the client is throttled, so that an empty response replaces this request's."""
        self._throttled = callback

    def throttled(self) -> None:
        """Called when an empty response replaces this request's."""
        if self._throttled is not None:
            self._throttled()

    def hold(self) -> None:
        """Keeps the memory of its bytes reserved after its handler has returned, until :meth:`release`."""
        self._is_held = True

    def release(self) -> None:
        """Releases the memory of its bytes."""
        self.connection.release(self.size)

    def handled(self) -> None:
        """Called when its handler has returned."""
        if not self._is_held:
            self.release()

    def on_abandon(self, callback: Callable[[], object]) -> None:
        """Sets a callback that runs once if the client disconnects before the request has ended."""
        if self.abandoned:
            callback()
        else:
            self._abandon = callback

    def when_over(self, callback: Callable[[], object]) -> None:
        """Sets a callback that runs once when the response is written, or the client has disconnected."""
        if self.abandoned:
            callback()
        else:
            self._over = callback

    def over(self) -> None:
        """Called by the processor when the request is finished."""
        callback = self._over
        # Callbacks usually refer back to the request. Such cycles would wait for the garbage collector.
        self._over = self._abandon = self._throttled = None
        if callback is not None:
            callback()

    def abandon(self) -> None:
        """Called by the processor when the client disconnects."""
        self._abandoned = True
        callback = self._abandon
        self.over()
        if callback is not None:
            callback()


class WrappedRequest(Request):
    """Wraps a request, and decides how it ends."""

    __slots__ = ("_request",)

    def __init__(self, request: Request) -> None:
        super().__init__(request.header, request._channel, request.connection)
        self._request = request

    @property
    def abandoned(self) -> bool:
        return self._request.abandoned

    def hold(self) -> None:
        self._request.hold()

    def release(self) -> None:
        self._request.release()

    def on_abandon(self, callback: Callable[[], object]) -> None:
        self._request.on_abandon(callback)

    def took_long(self, in_slices: Callable[[Request, Generator[None, None, None]], object]) -> None:
        self._request.took_long(in_slices)

    def when_over(self, callback: Callable[[], object]) -> None:
        self._request.when_over(callback)

    def when_throttled(self, callback: Callable[[], object]) -> None:
        self._request.when_throttled(callback)
