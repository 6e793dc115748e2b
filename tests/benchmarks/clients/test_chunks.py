from __future__ import annotations

from benchmarks.clients.chunks import MOST_BEHIND, Chunks


def test_chunks_are_due_in_order_once_their_last_delivery_has_ended() -> None:
    ended = set[int]()
    chunks: Chunks[int] = Chunks(ended.__contains__)
    assert list(chunks.due_after([1, 2])) == []
    ended |= {1, 4}
    assert list(chunks.due_after([3, 4])) == []
    ended |= {2}
    assert list(chunks.due_after([5, 6])) == [[1, 2], [3, 4]]
    assert list(chunks.rest()) == [[5, 6]]
    assert list(chunks.rest()) == []


def test_the_oldest_is_waited_for_when_there_are_too_many() -> None:
    chunks: Chunks[int] = Chunks(lambda delivery: False)
    due = [one for number in range(MOST_BEHIND + 2) for one in chunks.due_after([number])]
    assert due == [[0], [1]]
    assert len(list(chunks.rest())) == MOST_BEHIND
