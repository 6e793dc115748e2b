from __future__ import annotations

from collections.abc import Callable

from aioproducer.broker.purgatory.delayed_fetch import DelayedFetch
from aioproducer.broker.requests.request import ClientSoftware, Request
from aioproducer.broker.requests.response import RequestEnd, SendResponse
from aioproducer.protocol.framing import decode_response
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.messages.fetch import FetchResponse


class Remembers:
    """A channel. The responses that were sent differ in their throttle times."""

    id, listener, address = "", "", ""
    user, security_protocol, authenticator = "ANONYMOUS", "PLAINTEXT", None

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.software: ClientSoftware | None = None

    def release(self, size: int) -> None:
        pass

    def send_response(self, request: Request, response: RequestEnd) -> None:
        assert isinstance(response, SendResponse)
        _, message = decode_response(FetchResponse, 12, b"".join(response.parts)[4:])
        self.sent.append(message.throttle_time_ms)

    def send_callback(self, request: Request, fun: Callable[[], object]) -> None:
        fun()

    call_now = send_callback


class Fetch:
    """What the fetch of a request reads: enough or not, and a number that distinguishes it from later reads."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.enough = False
        self.read_as = 1
        self.looked_at: list[object] = []
        self.is_gone = False

    def is_enough(self) -> bool:
        return self.enough

    def is_enough_after(self, partition: object) -> bool:
        self.looked_at.append(partition)
        return self.enough

    def gone(self) -> None:
        self.is_gone = True

    def answer(self) -> None:
        self.request.respond(FetchResponse(throttle_time_ms=self.read_as))


class Waiting(DelayedFetch):
    """A fetch that waits, and what became of it."""

    def __init__(self) -> None:
        self.channel = Remembers()
        self.request = Request(RequestHeader(1, 12, 1, None), self.channel, self.channel)
        self.fetch = Fetch(self.request)
        super().__init__(self.request, 1000, self.fetch)


def test_the_answer_is_the_read_that_was_enough() -> None:
    waiting = Waiting()
    assert not waiting.try_complete()
    waiting.fetch.enough, waiting.fetch.read_as = True, 2
    assert waiting.try_complete()
    waiting.fetch.read_as = 3
    assert not waiting.try_complete()
    assert waiting.channel.sent == [2]


def test_looks_at_nothing_but_what_something_happened_to() -> None:
    waiting = Waiting()
    assert not waiting.try_complete_after("a")
    waiting.fetch.enough = True
    assert waiting.try_complete_after("b")
    assert waiting.fetch.looked_at == ["a", "b"]
    assert waiting.channel.sent == [1]


def test_is_answered_with_what_there_is_when_its_time_is_up() -> None:
    waiting = Waiting()
    assert waiting.force_complete()
    assert waiting.channel.sent == [1]


def test_forgets_a_client_that_is_gone() -> None:
    waiting = Waiting()
    waiting.request.abandon()
    assert waiting.is_completed
    assert waiting.fetch.is_gone
    assert not waiting.force_complete()
    assert waiting.channel.sent == []


def test_does_not_wait_for_one_that_was_gone_before() -> None:
    channel = Remembers()
    request = Request(RequestHeader(1, 12, 1, None), channel, channel)
    request.abandon()
    assert DelayedFetch(request, 1000, Fetch(request)).is_completed
