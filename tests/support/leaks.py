"""Checks that a test leaves nothing behind: no task, no socket, no warning."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest


@pytest.fixture
async def no_leaks() -> AsyncIterator[None]:
    """Fails a test that leaves a task behind. Open sockets and futures warn when they are collected."""
    before = asyncio.all_tasks()
    yield
    # An aborted transport closes its socket in the loop's next turn.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    left = {task for task in asyncio.all_tasks() - before - {asyncio.current_task()} if not task.done()}
    assert not left, f"tasks left behind: {left}"
    gc.collect()
