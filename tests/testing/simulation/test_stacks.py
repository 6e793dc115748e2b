from __future__ import annotations

import asyncio

from aioproducer.testing.simulation.stacks import waiting_tasks

from .simulated import World


def test_a_line_for_each_task_and_where_it_stands() -> None:
    world = World()
    never: list[asyncio.Future[None]] = []

    async def inner() -> None:
        never.append(world.loop.create_future())
        await never[0]

    async def outer() -> None:
        await inner()

    async def work() -> list[str]:
        task = asyncio.create_task(outer(), name="a task")
        await asyncio.sleep(0)
        lines = waiting_tasks(world.loop)
        task.cancel()
        return lines

    lines = world.run(work)
    assert len(lines) == 2
    name = "test_a_line_for_each_task_and_where_it_stands.<locals>"
    assert lines[1].startswith(f"a task: {name}.outer (test_stacks.py:")
    assert f" > {name}.inner (test_stacks.py:" in lines[1]
