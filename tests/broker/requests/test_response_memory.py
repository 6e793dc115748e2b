from __future__ import annotations

from aioproducer.broker.requests.request import Request, WrappedRequest
from aioproducer.broker.requests.response_memory import ResponseMemory
from aioproducer.protocol.headers import RequestHeader

from .test_long_work import Channel


def make() -> Request:
    channel = Channel()
    return Request(RequestHeader(1, 12, 1, None), channel, channel)


LARGE = 100_000


def test_a_request_gets_a_quarter_of_the_rest_until_it_ends() -> None:
    memory = ResponseMemory(10 * LARGE)
    requests = [make(), make(), WrappedRequest(make())]
    assert memory.share == 10 * LARGE // 4
    for request in requests:
        memory.take(request, 2 * LARGE)
    assert (memory.left, memory.share) == (4 * LARGE, LARGE)
    requests[0].over()
    requests[0].over()
    requests[1].abandon()
    requests[1].over()
    assert memory.left == 8 * LARGE
    requests[2]._request.over()  # type: ignore[attr-defined]
    assert memory.left == 10 * LARGE


def test_single_batches_may_exceed_it() -> None:
    memory = ResponseMemory(LARGE)
    request = make()
    memory.take(request, 3 * LARGE)
    assert (memory.left, memory.share) == (-2 * LARGE, 0)
    request.over()
    assert memory.left == LARGE


def test_small_responses_and_those_of_clients_that_are_gone_do_not_count() -> None:
    memory = ResponseMemory(LARGE)
    request = make()
    memory.take(request, 1000)
    assert memory.left == LARGE
    request.abandon()
    memory.take(request, LARGE)
    assert memory.left == LARGE


def test_one_response_has_8_mib_at_most() -> None:
    assert ResponseMemory().share == 8 * 1024 * 1024
