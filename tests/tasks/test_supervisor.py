from __future__ import annotations

import asyncio
import gc

import pytest

from aioproducer.tasks.supervisor import Supervisor
from tests.support.leaks import no_leaks as no_leaks

pytestmark = pytest.mark.usefixtures("no_leaks")


class Watched:
    """A supervisor, and what it reported."""

    def __init__(self) -> None:
        self.crashes: list[BaseException] = []
        self.supervisor = Supervisor(self.crashes.append)


async def forever() -> None:
    await asyncio.Event().wait()


async def failing(error: BaseException) -> None:
    raise error


async def test_a_task_that_ends_is_forgotten() -> None:
    watched = Watched()
    await watched.supervisor.spawn(asyncio.sleep(0), "short")
    await asyncio.sleep(0)
    assert not watched.supervisor._tasks
    assert not watched.crashes


async def test_the_first_that_fails_is_reported_and_all_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    first, second = ValueError("the first"), ValueError("the second")
    watched.supervisor.launch(failing(first), "one")
    watched.supervisor.launch(failing(second), "two")
    for _ in range(3):
        await asyncio.sleep(0)
    assert watched.crashes == [first]
    assert "the first" in caplog.text
    assert "the second" in caplog.text


async def test_a_task_cancelled_by_others_is_reported_by_name(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    task = watched.supervisor.spawn(forever(), "sender")
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert [type(crash) for crash in watched.crashes] == [asyncio.CancelledError]
    assert "sender was cancelled from outside" in str(watched.crashes[0])
    assert not caplog.records  # asyncio.run's own way to end, and no bug


async def test_a_deliberate_stop_is_not_a_crash() -> None:
    watched = Watched()
    one = watched.supervisor.spawn(forever(), "one")
    watched.supervisor.launch(forever(), "two")
    watched.supervisor.launch(forever(), "not even begun")
    watched.supervisor.cancel(one)
    await watched.supervisor.stop()
    await asyncio.sleep(0)
    assert one.cancelled()
    assert not watched.crashes
    await watched.supervisor.stop()


async def test_a_task_that_fails_while_it_is_stopped_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def bad_loser() -> None:
        try:
            await forever()
        finally:
            raise ValueError("while it ends")

    watched = Watched()
    watched.supervisor.launch(bad_loser(), "bad loser")
    await asyncio.sleep(0)
    await watched.supervisor.stop()
    await asyncio.sleep(0)
    assert [str(crash) for crash in watched.crashes] == ["while it ends"]


async def test_a_task_may_stop_all_the_others() -> None:
    watched = Watched()
    ended: list[str] = []

    async def stopper() -> None:
        await watched.supervisor.stop()
        ended.append("stopper")

    watched.supervisor.launch(forever(), "other")
    await watched.supervisor.spawn(stopper(), "stopper")
    assert ended == ["stopper"]
    assert not watched.crashes


async def test_tasks_are_held_on_to() -> None:
    watched = Watched()
    ended: list[str] = []

    async def work() -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        ended.append("work")

    watched.supervisor.launch(work(), "work")
    while not ended:
        gc.collect(0)
        await asyncio.sleep(0)
