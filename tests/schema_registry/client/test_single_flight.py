"""One request for all."""

from __future__ import annotations

import asyncio

import pytest

from aioproducer.errors import KafkaError
from aioproducer.schema_registry.client.single_flight import SingleFlight


class Made:
    def __init__(self) -> None:
        self.calls = 0
        self.go = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.calls += 1
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return self.calls


async def waiting(flight: SingleFlight, made: Made, count: int) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(flight.result("key", made)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_all_get_the_result_and_the_next_asks_again() -> None:
    flight, made = SingleFlight(), Made()
    tasks = await waiting(flight, made, 3)
    made.go.set()
    assert await asyncio.gather(*tasks) == [1, 1, 1]
    assert await flight.result("key", made) == 2


async def test_keys_are_asked_apart() -> None:
    flight, made = SingleFlight(), Made()
    made.go.set()
    assert {await flight.result("a", made), await flight.result("b", made)} == {1, 2}


async def test_all_get_the_error_each_its_own() -> None:
    flight, made = SingleFlight(), Made()
    tasks = await waiting(flight, made, 3)
    made.error = KafkaError("no")
    made.go.set()
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(error) for error in errors] == ["no"] * 3
    assert len(set(map(id, errors))) == 3
    assert made.calls == 1


async def test_if_the_first_is_cancelled_the_next_one_asks() -> None:
    flight, made = SingleFlight(), Made()
    first, second, third = await waiting(flight, made, 3)
    first.cancel()
    second.cancel()
    made.go.set()
    assert await third == 2
    assert first.cancelled()
    assert second.cancelled()


async def test_another_error_is_the_callers_own() -> None:
    flight, made = SingleFlight(), Made()
    first, second = await waiting(flight, made, 2)
    made.error = ZeroDivisionError("a bug")
    made.go.set()
    for task in (first, second):
        with pytest.raises(ZeroDivisionError):
            await task
    assert made.calls == 2
