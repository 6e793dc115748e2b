"""Clean-up that is completed even if its caller is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from aioproducer.tasks.cancelled_scopes import completed_in_cancelled_scopes
from aioproducer.tasks.own_task import start_task


async def to_the_end(work: Coroutine[Any, Any, None], name: str) -> None:
    """Awaits the work in a task of its own. A caller that is cancelled still waits for its end; cancelled once more,
    it leaves, and the work goes on.
    """
    task = start_task(work, name)
    try:
        with completed_in_cancelled_scopes():
            await asyncio.wait([task])
    finally:
        if not task.done():
            with completed_in_cancelled_scopes():
                await asyncio.wait([task])
    task.result()
