from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from functools import partial

import pytest

from aioproducer.producer.admission.enqueuing import Enqueuing
from aioproducer.producer.delivery.delivery import Delivery
from tests.producer.simulations.standing_loop import Loop, new_result

UNAWAITED = "^coroutine 'KafkaProducer.enqueue' was never awaited$"

DELIVERY = Delivery(new_result(Loop(), "t", 0), 0)


class Calls(list[str]):
    async def steps(self) -> Delivery:
        self.append("begun")
        await asyncio.sleep(0)
        return DELIVERY

    def enqueuing(self, loop: asyncio.AbstractEventLoop | None = None) -> Enqueuing:
        return Enqueuing(loop, self.steps, partial(self.append, "given up"), partial(self.append, "forgotten"))


async def test_an_enqueue_takes_its_steps_when_it_is_awaited() -> None:
    calls = Calls()
    assert await calls.enqueuing() is DELIVERY
    assert await asyncio.create_task(calls.enqueuing()) is DELIVERY
    assert calls == ["begun", "begun"]
    twice = calls.enqueuing()
    _ = await twice
    with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
        _ = await twice


async def test_a_task_cancelled_before_its_first_step_gives_up() -> None:
    calls = Calls()
    task = asyncio.create_task(calls.enqueuing())
    task.cancel()
    _ = await asyncio.wait([task])
    calls.enqueuing().close()
    assert task.cancelled()
    assert calls == ["given up", "given up"]


async def test_a_task_cancelled_later_leaves_that_to_its_steps() -> None:
    calls = Calls()
    task = asyncio.create_task(calls.enqueuing())
    await asyncio.sleep(0)
    task.cancel()
    _ = await asyncio.wait([task])
    begun = calls.enqueuing()
    begun.send(None)
    begun.close()
    assert task.cancelled()
    assert calls == ["begun", "begun"]


def drop(calls: Calls, loop: asyncio.AbstractEventLoop) -> None:
    calls.enqueuing(loop)  # type: ignore[unused-awaitable]


def drop_in_a_cycle(calls: Calls, loop: asyncio.AbstractEventLoop) -> None:
    cycle: list[object] = [calls.enqueuing(loop)]
    cycle.append(cycle)
    del cycle
    gc.collect()


def drop_in_a_thread(calls: Calls, loop: asyncio.AbstractEventLoop) -> None:
    thread = threading.Thread(target=drop_in_a_cycle, args=(calls, loop))
    thread.start()
    thread.join()


@pytest.mark.parametrize("drops", [drop, drop_in_a_cycle, drop_in_a_thread])
async def test_an_enqueue_that_is_forgotten_warns_and_its_loop_hears_of_it(
    drops: Callable[[Calls, asyncio.AbstractEventLoop], None],
) -> None:
    calls = Calls()
    with pytest.warns(RuntimeWarning, match=UNAWAITED):
        drops(calls, asyncio.get_running_loop())
    assert calls == []  # not in the middle of anything
    await asyncio.sleep(0)
    assert calls == ["forgotten"]


def test_the_loop_may_have_ended() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    with pytest.warns(RuntimeWarning, match="enqueue"):
        drop(Calls(), loop)
