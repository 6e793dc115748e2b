from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest

from aioproducer.net import in_slices as module
from aioproducer.net.in_slices import in_slices
from tests.net.slices import Slices


def steps(taken: list[int]) -> Generator[None, None, str]:
    for step in range(10):
        taken.append(step)
        yield
    return "done"


@pytest.mark.parametrize(("over", "most"), [(True, 1), (False, 10)])
async def test_others_have_turns_when_a_slice_is_over(over: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TimeSlice", lambda loop: Slices(over))
    taken: list[int] = []
    done = asyncio.create_task(in_slices(steps(taken)))
    in_a_turn = []
    while not done.done():
        before = len(taken)
        await asyncio.sleep(0)
        in_a_turn.append(len(taken) - before)
    assert max(in_a_turn) == most
    assert (sum(in_a_turn), await done) == (10, "done")


async def test_an_error_of_a_step_is_raised() -> None:
    def failing() -> Generator[None, None, None]:
        yield
        raise ValueError("a step")

    with pytest.raises(ValueError, match="a step"):
        await in_slices(failing())
