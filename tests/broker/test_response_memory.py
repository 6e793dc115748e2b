from __future__ import annotations

from aioproducer.broker.request import Request, WrappedRequest
from aioproducer.broker.response_memory import ResponseMemory
from aioproducer.protocol.headers import RequestHeader

from .test_long_work import Channel


def make() -> Request:
    channel = Channel()
    return Request(RequestHeader(1, 12, 1, None), channel, channel)


def test_a_quarter_of_what_is_left_until_the_request_is_over() -> None:
    memory = ResponseMemory(1000)
    requests = [make() for _ in range(3)]
    taken = [memory.take(request, 600) for request in requests]
    assert [one.size for one in taken] == [250, 187, 140]
    taken[0].settle(100)
    assert memory.left == 1000 - 100 - 187 - 140
    requests[0].over()
    requests[0].over()
    requests[1].abandon()
    requests[1].over()
    assert memory.left == 1000 - 140
    taken[1].settle(300)
    assert memory.left == 1000 - 140, "it was over before it was read"


def test_single_batches_may_exceed_it() -> None:
    memory = ResponseMemory(100)
    one, other = make(), WrappedRequest(make())
    memory.take(one, 10).settle(500)
    taken = memory.take(other, 10)
    assert (memory.left, taken.size) == (-400, 0)
    taken.settle(500)
    assert memory.left == -900
    one.over()
    other._request.over()
    assert memory.left == 100


def test_a_client_that_is_gone_takes_nothing() -> None:
    memory = ResponseMemory(100)
    request = make()
    request.abandon()
    memory.take(request, 10).settle(50)
    assert memory.left == 100
