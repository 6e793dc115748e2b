"""Spark's blocking iterator as an asynchronous one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


async def read_ahead(items: Iterator[T]) -> AsyncGenerator[T, None]:
    """The items; each is requested, in a thread, when the one before it is handed out.

    If the iteration ends early, it waits for the item that was requested: no other code may read from Spark meanwhile.
    """
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, "aioproducer-spark") as thread:
        coming = loop.run_in_executor(thread, next, items, None)
        try:
            while (item := await asyncio.shield(coming)) is not None:
                coming = loop.run_in_executor(thread, next, items, None)
                yield item
        finally:
            # Its result does not matter: a caller that ends early has its own reason.
            await asyncio.gather(coming, return_exceptions=True)
