"""Many requests at the same time, but not all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE: Final = 100


async def in_parallel(items: Iterable[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
    """The results, in the items' order. When all have ended, raises the first error."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(item: T) -> R:
        async with room:
            return await work(item)

    results = await asyncio.gather(*map(one, items), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
