"""One request of a client, from its last byte received to its response written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from aioproducer.broker.requests.response import (
    CloseConnectionResponse,
    EndThrottlingResponse,
    NoOpResponse,
    RequestEnd,
    SendResponse,
    StartThrottlingResponse,
)
from aioproducer.protocol.framing import encode_response
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.schema import Response

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from aioproducer.broker.security.sasl_server_authenticator import SaslServerAuthenticator
    from aioproducer.protocol.primitives import Buffer
    from aioproducer.tasks.background_threads import BackgroundThreads


class ResponseChannel(Protocol):
    """Where responses go to, and what is left of a request that was put off."""

    def send_response(self, request: Request, response: RequestEnd) -> None: ...

    def send_callback(self, request: Request, fun: Callable[[], object]) -> None: ...


class Quotas(Protocol):
    """Who throttles clients; see ``QuotaManagers``."""

    def answer(self, request: Request, response: Response) -> Response:
        """A request is about to be answered. Returns what the client gets instead of ``response``."""

    def no_answer(self, request: Request) -> None:
        """A request ends without a response."""


class ClientSoftware(NamedTuple):
    """What a client says that it is (KIP-511)."""

    name: str
    version: str


class Connection(Protocol):
    """Where a request came from."""

    @property
    def id(self) -> str:
        """``local-remote-index``; the index makes it another one when a port is used again."""

    @property
    def listener(self) -> str: ...

    @property
    def address(self) -> str:
        """The client's, without the port."""

    @property
    def user(self) -> str:
        """Who the client is."""

    @property
    def security_protocol(self) -> str:
        """Kafka's name for how the listener is secured."""

    @property
    def authenticator(self) -> SaslServerAuthenticator | None:
        """Authenticates the client; None on a listener without SASL."""

    software: ClientSoftware | None
    """None if it has not said."""

    def release(self, size: int) -> None:
        """The bytes of a request of this size are not needed any more."""


class Request:
    """A request being handled. Exactly one of :meth:`respond`, :meth:`no_response` and :meth:`close_connection` ends
    it. Until then the channel is muted: the client's next request waits.

    Its time line, in seconds of the broker's clock, -1 where it has not got to yet: ``start_time`` (T0: received
    whole), ``request_dequeue_time`` (T1: a handler takes it), ``api_local_complete_time`` (T2: the handler is done with
    it), ``response_complete_time`` (T3: its response is there), ``response_dequeue_time`` (T4: the processor takes
    that).
    """

    __slots__ = (
        "_abandon",
        "_channel",
        "_over",
        "_threads",
        "_throttled",
        "abandoned",
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
        """The request's bytes without the size; empty once it has been handled."""
        self.body_at = body_at
        self.size = len(frame)
        self.quotas = quotas
        self._channel = channel
        self._abandon: Callable[[], object] | None = None
        self._over: Callable[[], object] | None = None
        self._throttled: Callable[[], object] | None = None
        self.abandoned = False
        """The client has disconnected."""
        self._threads: BackgroundThreads | None = None
        self.throttle_time_ms = 0
        self.start_time = start_time
        self.request_dequeue_time = -1.0
        self.api_local_complete_time = -1.0
        self.response_complete_time = -1.0
        self.response_dequeue_time = -1.0

    def respond(self, response: Response, version: int | None = None) -> None:
        """Answers in the request's version, or in ``version`` (ApiVersions only, KIP-511)."""
        if self.quotas is not None:
            response = self.quotas.answer(self, response)
        if version is None:
            version = self.header.api_version
        if self._threads is not None:
            encoding = self._threads.run(partial(self._encoded, response, version))
            encoding.add_done_callback(partial(self._send_encoded, response))
        else:
            self._send(self._encoded(response, version), response)

    def _send(self, parts: Sequence[Buffer], response: Response) -> None:
        self._channel.send_response(self, SendResponse(parts, response))

    def _send_encoded(self, response: Response, encoding: asyncio.Future[Sequence[Buffer]]) -> None:
        if not encoding.cancelled():  # else the node has stopped
            self.call_back(lambda: self._send(encoding.result(), response))

    def took_long(self, threads: BackgroundThreads) -> None:
        """One of these threads encodes the response, as that may take long, too."""
        self._threads = threads

    def _encoded(self, response: Response, version: int) -> Sequence[Buffer]:
        return encode_response(response, version=version, correlation_id=self.header.correlation_id)

    def respond_bytes(self, parts: Sequence[Buffer]) -> None:
        """Answers with a frame that is already made."""
        self._channel.send_response(self, SendResponse(parts))

    def no_response(self) -> None:
        """Ends a request that has no response (produce with acks=0)."""
        if self.quotas is not None:
            self.quotas.no_answer(self)
        self._channel.send_response(self, NoOpResponse())

    def close_connection(self, reason: str, response: Response | None = None) -> None:
        """Ends a request that cannot be answered otherwise, or has this as its last ``response``. Without a ``reason``
        the log has it already."""
        parts = () if response is None else self._encoded(response, self.header.api_version)
        self._channel.send_response(self, CloseConnectionResponse(reason, parts, response))

    def call_back(self, fun: Callable[[], object]) -> None:
        """Has a handler call ``fun``, before new requests. What it raises ends the request as if the handler had raised
        it (Kafka's ``wrapAsyncCallback``)."""
        self._channel.send_callback(self, fun)

    def start_throttling(self) -> None:
        """The client's next request waits for :meth:`end_throttling`, too. Before the request is ended (KIP-219)."""
        self._channel.send_response(self, StartThrottlingResponse())

    def end_throttling(self) -> None:
        self._channel.send_response(self, EndThrottlingResponse())

    def when_throttled(self, callback: Callable[[], object]) -> None:
        """``callback`` runs before an empty response takes the place of this one because the client is throttled."""
        self._throttled = callback

    def throttled(self) -> None:
        """Called when an empty response takes the place of this request's."""
        if self._throttled is not None:
            self._throttled()

    def on_abandon(self, callback: Callable[[], object]) -> None:
        """``callback`` runs once if the client disconnects before the request has ended."""
        if self.abandoned:
            callback()
        else:
            self._abandon = callback

    def when_over(self, callback: Callable[[], object]) -> None:
        """``callback`` runs once when the response is written, or the client has disconnected."""
        if self.abandoned:
            callback()
        else:
            self._over = callback

    def over(self) -> None:
        """Called by the processor when the request is finished."""
        callback, self._over = self._over, None
        if callback is not None:
            callback()

    def abandon(self) -> None:
        """Called by the processor when the client disconnects."""
        self.abandoned = True
        self.over()
        callback, self._abandon = self._abandon, None
        if callback is not None:
            callback()


class WrappedRequest(Request):
    """Stands in front of a request, whose client is its own, and decides how that ends."""

    __slots__ = ("_request",)

    def __init__(self, request: Request) -> None:
        super().__init__(request.header, request._channel, request.connection)
        self._request = request
        request.on_abandon(self.abandon)

    def took_long(self, threads: BackgroundThreads) -> None:
        self._request.took_long(threads)

    def when_over(self, callback: Callable[[], object]) -> None:
        self._request.when_over(callback)

    def when_throttled(self, callback: Callable[[], object]) -> None:
        self._request.when_throttled(callback)
