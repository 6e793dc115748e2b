"""Nothing may be left behind by a test: no task, no socket, no warning."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest


@pytest.fixture
async def no_leaks() -> AsyncIterator[None]:
    """Fails a test that leaves a task behind. What is left of sockets and futures warns when it is collected."""
    gc.freeze()  # what is there already need not be looked at again
    before = asyncio.all_tasks()
    yield
    # A transport that was aborted lets go of its socket in the loop's next turn.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    left = {task for task in asyncio.all_tasks() - before - {asyncio.current_task()} if not task.done()}
    assert not left, f"tasks left behind: {left}"
    gc.collect()
