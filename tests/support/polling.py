"""Waits for what has no event to wait for: another process, its files, its port."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


def until(condition: Callable[[], bool], what: str, *, timeout: float = 60.0, every: float = 0.02) -> None:
    """Returns as soon as the condition holds; it is asked again every so many seconds.

    Raises TimeoutError, with ``what``, when it has not held for ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout:g} s: {what}")
        time.sleep(every)


async def eventually(condition: Callable[[], object], *, timeout: float = 10.0, every: float = 0.0) -> None:
    """``until`` on an event loop, for what has no event; without ``every`` the condition is checked in every turn."""
    async with asyncio.timeout(timeout):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(every)
