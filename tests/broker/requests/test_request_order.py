from __future__ import annotations

from aioproducer.broker.requests.request import Request
from aioproducer.broker.requests.request_order import RequestOrder
from aioproducer.protocol.headers import RequestHeader
from tests.broker.requests.test_long_work import Channel


def test_one_request_of_a_connection_at_a_time() -> None:
    order, one, other = RequestOrder(), Channel(), Channel()
    started: list[str] = []

    def run(name: str, channel: Channel) -> None:
        order.run(Request(RequestHeader(0, 9, 1, None), channel, channel), lambda: started.append(name))

    for name in "abc":
        run(name, one)
    run("x", other)
    assert started == ["a", "x"]
    assert order.is_busy(one)
    order.ended(one)
    assert started == ["a", "x", "b"]
    order.ended(one)
    order.ended(one)
    assert started == ["a", "x", "b", "c"]
    assert (order.is_busy(one), order.is_busy(other)) == (False, True)
