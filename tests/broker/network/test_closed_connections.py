from __future__ import annotations

from aioproducer.broker.network.closed_connections import INTERVAL, LINES, MAX_KINDS, ClosedConnections


def test_the_same_reason_has_one_line_and_a_count_in_an_interval() -> None:
    closed = ClosedConnections()
    assert closed.closed("a-0", "its request is too large: 7", 100.0) == [
        "closing the connection a-0: its request is too large: 7"
    ]
    for number in range(5):
        assert closed.closed(f"a-{number}", "its request is too large: 7", 101.0) == []
    assert closed.closed("a-9", "its request is too large: 7", 100.0 + INTERVAL) == [
        "closed 5 more connections in 10 s for reasons of the kind: its request is too large",
        "closing the connection a-9: its request is too large: 7",
    ]
    assert closed.rest(200.0) == []


def test_different_reasons_of_a_kind_have_a_few_lines() -> None:
    closed = ClosedConnections()
    lines = [closed.closed("a", f"it sent a request of API {number}", 100.0) for number in range(1000)]
    assert sum(map(len, lines)) == LINES
    assert closed.rest(103.0) == [
        f"closed {1000 - LINES} more connections in 3 s for reasons of the kind: it sent a request of API N"
    ]
    assert closed.rest(103.0) == []


def test_garbage_does_not_silence_other_reasons() -> None:
    closed = ClosedConnections()
    for number in range(100_000):
        closed.closed("a", f"the size of a frame is negative: -{number}", 100.0)
    assert len(closed.closed("b", "its authentication by PLAIN failed", 100.0)) == 1


def test_any_number_of_kinds_takes_little_memory_and_is_counted() -> None:
    closed = ClosedConnections()
    lines = [closed.closed("a", "x" * number, 100.0) for number in range(1000)]
    assert sum(map(len, lines)) == MAX_KINDS + LINES
    assert len(closed._kinds) == MAX_KINDS + 1
    assert closed.rest(101.0) == [
        f"closed {1000 - MAX_KINDS - LINES} more connections in 1 s for reasons of the kind: other reasons"
    ]
