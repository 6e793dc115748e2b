from __future__ import annotations

from aioproducer.broker.requests.request import Request
from aioproducer.broker.requests.request_order import RequestOrder
from aioproducer.protocol.headers import RequestHeader
from tests.broker.requests.test_long_work import Channel


def test_one_request_of_a_connection_at_a_time() -> None:
    order, one, other = RequestOrder(), Channel(), Channel()
    started: list[str] = []

    def run(name: str, channel: Channel) -> Request:
        request = Request(RequestHeader(0, 9, 1, None), channel, channel)
        order.run(request, lambda: started.append(name))
        return request

    requests = [run(name, one) for name in "abc"]
    run("x", other)
    assert started == ["a", "x"]
    assert order.is_busy(one)
    order.ended(requests[0])
    assert started == ["a", "x", "b"]
    order.ended(requests[1])
    order.ended(requests[2])
    assert started == ["a", "x", "b", "c"]
    assert (order.is_busy(one), order.is_busy(other)) == (False, True)


def test_a_request_keeps_its_place_until_all_its_works_have_ended() -> None:
    order, channel = RequestOrder(), Channel()
    first, second = (Request(RequestHeader(0, 9, number, None), channel, channel) for number in range(2))
    started: list[str] = []
    order.run(first, lambda: started.append("decode"))
    order.run(second, lambda: started.append("second"))
    order.run(first, lambda: started.append("append"))
    order.ended(first)
    assert started == ["decode", "append"]
    order.ended(first)
    assert started == ["decode", "append", "second"]
    order.ended(second)
    assert not order.is_busy(channel)
