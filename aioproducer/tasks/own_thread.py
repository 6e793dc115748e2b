"""Work in a thread of its own: the loop's default executor may be busy with other work for long."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from aioproducer.tasks.background_threads import BackgroundThreads

T = TypeVar("T")


async def in_own_thread(name: str, work: Callable[[], T]) -> T:
    """What the work returns or raises."""
    threads = BackgroundThreads(name, 1)
    try:
        return await threads.run(work)
    finally:
        threads.close()
