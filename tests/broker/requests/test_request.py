from __future__ import annotations

import gc
from collections.abc import Callable

from aioproducer.broker.requests.request import ClientSoftware, Request, WrappedRequest
from aioproducer.broker.requests.response import (
    CloseConnectionResponse,
    EndThrottlingResponse,
    NoOpResponse,
    RequestEnd,
    SendResponse,
    StartThrottlingResponse,
)
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.framing import decode_response
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.messages.api_versions import ApiVersionsResponse
from aioproducer.protocol.messages.metadata import MetadataResponse


class Channel:
    """Notes what requests send."""

    id, listener, address = "127.0.0.1:9092-127.0.0.1:40000-0", "PLAINTEXT", "127.0.0.1"
    user, security_protocol, authenticator = "ANONYMOUS", "PLAINTEXT", None

    def __init__(self) -> None:
        self.sent: list[tuple[Request, RequestEnd]] = []
        self.software: ClientSoftware | None = None
        self.released: list[int] = []

    def release(self, size: int) -> None:
        self.released.append(size)

    def send_response(self, request: Request, response: RequestEnd) -> None:
        self.sent.append((request, response))

    def send_callback(self, request: Request, fun: Callable[[], object]) -> None:
        fun()

    call_now = send_callback


def make_request(api_key: ApiKey, version: int) -> tuple[Request, Channel]:
    channel = Channel()
    return Request(RequestHeader(api_key, version, 77, "test"), channel, channel), channel


def frame(channel: Channel) -> bytes:
    ((_, response),) = channel.sent
    assert isinstance(response, SendResponse)
    return b"".join(response.parts)


def test_a_response_has_the_version_and_the_correlation_id_of_its_request() -> None:
    request, channel = make_request(ApiKey.METADATA, 9)
    request.respond(MetadataResponse(cluster_id="c"))
    assert decode_response(MetadataResponse, 9, frame(channel)[4:]) == (77, MetadataResponse(cluster_id="c"))


def test_another_version_of_the_response_may_be_sent() -> None:
    request, channel = make_request(ApiKey.API_VERSIONS, 99)
    request.respond(ApiVersionsResponse(35), version=0)
    assert decode_response(ApiVersionsResponse, 0, frame(channel)[4:]) == (77, ApiVersionsResponse(35))


def test_other_ends() -> None:
    request, channel = make_request(ApiKey.PRODUCE, 9)
    request.start_throttling()
    request.no_response()
    request.close_connection("a reason")
    request.end_throttling()
    kinds = [StartThrottlingResponse, NoOpResponse, CloseConnectionResponse, EndThrottlingResponse]
    assert [(sender, type(response)) for sender, response in channel.sent] == [(request, kind) for kind in kinds]


def test_a_disconnect_calls_each_listener_once() -> None:
    request, _ = make_request(ApiKey.FETCH, 12)
    calls: list[str] = []
    request.on_abandon(lambda: calls.append("before"))
    request.abandon()
    request.abandon()
    request.on_abandon(lambda: calls.append("after"))
    assert calls == ["before", "after"]
    assert request.abandoned


def test_a_wrapped_request_is_abandoned_with_its_request() -> None:
    request, _ = make_request(ApiKey.FETCH, 12)
    wrapped = WrappedRequest(WrappedRequest(request))
    told: list[str] = []
    wrapped.on_abandon(lambda: told.append("gone"))
    assert not wrapped.abandoned
    request.abandon()
    assert (wrapped.abandoned, told) == (True, ["gone"])


def test_its_bytes_are_released_when_its_handler_returns_unless_they_are_held() -> None:
    channel = Channel()
    first, second = (Request(RequestHeader(1, 12, 1, None), channel, channel, bytes(size)) for size in (7, 9))
    WrappedRequest(first).hold()
    first.handled()
    second.handled()
    assert channel.released == [9]
    WrappedRequest(first).release()
    assert channel.released == [9, 7]


def test_a_request_that_is_over_is_freed_without_the_garbage_collector() -> None:
    class Waiting:
        """Refers to the request that refers to it, as a fetch that waits does."""

        def __init__(self, request: Request) -> None:
            self.request = request
            request.on_abandon(self.done)
            request.when_throttled(self.done)
            request.when_over(self.done)

        def done(self) -> None:
            pass

    def unreachable(kind: type[object]) -> int:
        gc.collect()
        return sum(isinstance(one, kind) for one in gc.garbage)

    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for end in (Request.over, Request.abandon):
            request, channel = make_request(ApiKey.FETCH, 12)
            Waiting(request)
            end(request)
            del request, channel
        assert unreachable(Waiting) == 0
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
