from __future__ import annotations

from collections.abc import Callable

from aioproducer.broker.requests.request import ClientSoftware, Request
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

    def release(self, size: int) -> None:
        pass

    def send_response(self, request: Request, response: RequestEnd) -> None:
        self.sent.append((request, response))

    def send_callback(self, request: Request, fun: Callable[[], object]) -> None:
        fun()


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


def test_unless_another_version_is_asked_for() -> None:
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


def test_who_cares_is_told_once_that_the_client_is_gone() -> None:
    request, _ = make_request(ApiKey.FETCH, 12)
    told: list[str] = []
    request.on_abandon(lambda: told.append("before"))
    request.abandon()
    request.abandon()
    request.on_abandon(lambda: told.append("after"))
    assert told == ["before", "after"]
    assert request.abandoned
