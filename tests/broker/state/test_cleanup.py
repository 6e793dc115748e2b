"""Cleaning up now and then, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from aioproducer.broker.requests.slices import SLICE, Slices
from aioproducer.broker.state.cleanup import Cleanup
from aioproducer.errors import KafkaStorageException
from tests.support.manual_clock import ManualClock
from tests.support.virtual_time import World, virtual


@virtual
async def test_again_and_again_until_it_is_closed(world: World) -> None:
    cleaned: list[float] = []
    loop = asyncio.get_running_loop()

    def clean() -> Iterator[None]:
        cleaned.append(loop.time())
        yield

    cleanup, began = Cleanup("offsets", 10_000, clean, Slices(ManualClock())), loop.time()
    cleanup.start()
    cleanup.start()
    await asyncio.sleep(25)
    assert [round(at - began) for at in cleaned] == [10, 20]
    cleanup.close()
    await asyncio.sleep(25)
    assert len(cleaned) == 2
    cleanup.start()
    await asyncio.sleep(11)
    assert len(cleaned) == 3
    cleanup.close()


@virtual
async def test_others_have_their_turn_after_a_slice(world: World) -> None:
    clock, turns, done = ManualClock(), [0], []

    def clean() -> Iterator[None]:
        for _ in range(10):
            clock.advance(SLICE / 2)
            done.append(turns[0])
            yield

    async def others() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    cleanup = Cleanup("offsets", 1000, clean, Slices(clock))
    task = asyncio.create_task(others())
    cleanup.start()
    while len(done) < 10:  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    cleanup.close()
    assert len(set(done)) >= 3


@virtual
async def test_a_data_directory_that_fails_is_tried_again(world: World, caplog: pytest.LogCaptureFixture) -> None:
    tried = []

    def clean() -> Iterator[None]:
        tried.append(1)
        raise KafkaStorageException("the disk is full")
        yield

    cleanup = Cleanup("offsets", 1000, clean, Slices(ManualClock()))
    cleanup.start()
    await asyncio.sleep(2.5)
    cleanup.close()
    assert len(tried) == 2
    assert [record.getMessage() for record in caplog.records] == [
        "expired offsets are not removed: the disk is full"
    ] * 2
