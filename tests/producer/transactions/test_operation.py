from __future__ import annotations

import asyncio

import pytest

from aioproducer.errors import IllegalStateException, KafkaError
from aioproducer.producer.transactions.operation import Operation
from tests.support.virtual_time import World, virtual


@virtual
async def test_it_goes_on_when_nobody_waits(world: World) -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    operation = Operation("work", _set_after(1, done))
    assert not await operation.ended(loop.time() + 0.5)
    waiter = asyncio.create_task(operation.ended(loop.time() + 10))
    await asyncio.sleep(0)
    waiter.cancel()
    assert await operation.ended(loop.time() + 10)
    assert done.is_set()
    operation.result()


@virtual
async def test_a_time_that_is_over_is_no_wait(world: World) -> None:
    loop = asyncio.get_running_loop()
    operation = Operation("work", asyncio.sleep(1))
    began = loop.time()
    assert not await operation.ended(began - 1)
    assert loop.time() - began < 0.1
    await operation.settled()


@virtual
async def test_waiting_callers_get_the_reason_of_the_end(world: World) -> None:
    operation = Operation("work", asyncio.sleep(10))
    operation.cancel(IllegalStateException("given up"))
    await operation.settled()
    with pytest.raises(IllegalStateException, match="given up"):
        operation.result()


def test_a_failure_is_logged_unless_a_task_waits_for_it(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise KafkaError("of no use")

    async def run() -> None:
        told = Operation("told", fail())
        waiter = asyncio.create_task(told.ended(asyncio.get_running_loop().time() + 1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        told.leave()
        await waiter
        left = Operation("left", fail())
        await left.settled()
        left.leave()

    asyncio.run(run())
    assert [record.getMessage() for record in caplog.records] == ["left failed, and no caller was waiting: of no use"]


@virtual
async def test_it_does_not_end_itself(world: World) -> None:
    async def work() -> None:
        operation.cancel(KafkaError("by itself"))
        await asyncio.sleep(1)

    operation = Operation("work", work())
    await operation.settled()
    operation.result()


async def _set_after(seconds: float, event: asyncio.Event) -> None:
    await asyncio.sleep(seconds)
    event.set()
