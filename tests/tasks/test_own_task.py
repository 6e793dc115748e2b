from __future__ import annotations

import asyncio
import sys

import pytest

from aioproducer.tasks.own_task import start_task


@pytest.mark.parametrize("eager", [False, pytest.param(True, marks=pytest.mark.skipif("sys.version_info < (3, 12)"))])
async def test_a_task_begins_in_the_next_turn(eager: bool) -> None:
    if eager and sys.version_info >= (3, 12):
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    began: list[object] = []

    async def work() -> int:
        began.append(asyncio.current_task())
        return 5

    task = start_task(work(), "its name")
    assert not began
    assert await task == 5
    assert began[0] is task
    assert task.get_name() == "its name"
