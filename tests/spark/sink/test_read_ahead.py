from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from aioproducer.spark.sink.read_ahead import read_ahead


async def test_one_item_is_prefetched_and_no_more() -> None:
    wanted: list[int] = []
    second = threading.Event()

    def items() -> Iterator[int]:
        for number in range(4):
            wanted.append(number)
            if number == 1:
                second.set()
            yield number

    async with aclosing(read_ahead(items())) as reading:
        assert await anext(reading) == 0
        assert second.wait(10)
        assert wanted == [0, 1]
        assert [item async for item in reading] == [1, 2, 3]


async def test_an_error_of_the_iterator_is_raised_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise LookupError("no more")

    reading = read_ahead(items())
    assert await anext(reading) == 1
    with pytest.raises(LookupError, match="no more"):
        await anext(reading)


async def test_leaving_early_waits_for_requests_in_flight() -> None:
    """Nobody reads from Spark any more when it has been left."""
    reading = threading.Event()
    go_on = threading.Event()
    done = []

    def items() -> Iterator[int]:
        yield 1
        reading.set()
        assert go_on.wait(10)
        done.append(True)
        raise LookupError("of no interest any more")

    async with aclosing(read_ahead(items())) as ahead:
        assert await anext(ahead) == 1
        assert reading.wait(10)
        go_on.set()
    assert done == [True]
