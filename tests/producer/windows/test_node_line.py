"""Each node has a line of its own."""

from __future__ import annotations

from aioproducer.configs.producer_config import producer_config
from aioproducer.producer.batches.producer_batch import NO_LIMIT
from aioproducer.producer.windows.node_line import NodeLines


def test_what_is_known_of_one_node_says_nothing_of_another() -> None:
    lines = NodeLines(producer_config({"bootstrap.servers": "b:1", "max.in.flight.requests.per.connection": 4}))
    one, other = lines.of(1), lines.of(2)
    assert lines.of(1) is one
    one.limit.timed_out(1000, 0.0, 30.0)
    assert (one.limit.most, other.limit.most) == (500, NO_LIMIT)
    one.window.connected(0.001)
    for _ in range(100):
        work = one.window.sent(200, 200 * 300, 0.0)
        one.window.answered(0.02, 200, work=work)
    assert (one.window.places, other.window.places) == (1, 4)


def test_two_requests_have_room_where_none_is_unanswered() -> None:
    line = NodeLines(producer_config({"bootstrap.servers": "b:1"})).of(1)
    assert not line.has_room_for_two(), "nothing was answered yet"
    line.limit.answered(1000, 1000, 1, 0.001, 0.0)
    assert line.has_room_for_two()
    work = line.window.sent(1, 1000, 0.0)
    assert not line.has_room_for_two()
    line.window.answered(0.001, 1, work=work)
    assert line.has_room_for_two()
    line.timely.timed_out()
    assert not line.has_room_for_two(), "two might time out"


def test_their_limits_are_those_of_the_configs() -> None:
    config = {"bootstrap.servers": "b:1", "request.timeout.ms": 8000, "retry.backoff.max.ms": 500}
    limit = NodeLines(producer_config({**config, "max.request.size": 1000})).of(1).limit
    limit.timed_out(1000, 0.0, 30.0)
    assert limit.large_at == 30.5
    limit.answered(100, 100, 1, 1.0, 0.0)
    assert limit.grown == 100
    limit.answered(1000, 1000, 1, 1.0, 0.0)
    assert limit.most == NO_LIMIT, "the line has carried the largest request"
