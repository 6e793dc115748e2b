"""Owners take turns, and each one's items stay in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.requests.fair_queue import FairQueue


def all_of(queue: FairQueue[str]) -> str:
    return "".join(queue.popleft() for _ in range(len(queue)))


def test_owners_take_turns() -> None:
    queue: FairQueue[str] = FairQueue()
    for owner, item in (("x", "a"), ("x", "b"), ("x", "c"), ("y", "1"), ("z", "!"), ("y", "2")):
        queue.append(owner, item)
    assert all_of(queue) == "a1!b2c"


def test_an_empty_queue_has_no_next_item() -> None:
    queue: FairQueue[str] = FairQueue()
    with pytest.raises(KeyError):
        queue.popleft()
    queue.append("x", "a")
    assert (len(queue), queue.popleft(), len(queue), bool(queue)) == (1, "a", 0, False)


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.booleans())))
def test_an_item_waits_for_one_item_of_each_other_owner(steps: list[tuple[str, bool]]) -> None:
    """Whatever is queued and taken: between two items of an owner that has some, no other owner has two."""
    queue: FairQueue[tuple[str, int]] = FairQueue()
    numbers, waiting, since = dict.fromkeys("xyz", 0), dict.fromkeys("xyz", 0), {one: dict[str, int]() for one in "xyz"}
    for owner, takes in steps:
        if takes and queue:
            taken, number = queue.popleft()
            assert number == numbers[taken] - waiting[taken], "in order"
            waiting[taken] -= 1
            for other in "xyz":
                since[other] = {} if other == taken else since[other] | {taken: since[other].get(taken, 0) + 1}
                assert not waiting[other] or all(count <= 1 for count in since[other].values())
        else:
            since[owner] = since[owner] if waiting[owner] else {}
            queue.append(owner, (owner, numbers[owner]))
            numbers[owner] += 1
            waiting[owner] += 1
        assert len(queue) == sum(waiting.values())
