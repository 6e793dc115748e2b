"""How long the event loop stood still."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Self

INTERVAL = 0.002


class Heartbeat:
    """A task that wants to run every 2 ms. ``stall``: how much later than it wanted it ran at worst, in seconds."""

    def __init__(self) -> None:
        self.stall = 0.0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._beat())
        await asyncio.sleep(0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await asyncio.sleep(2 * INTERVAL)  # a stall that has just ended counts, too
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(INTERVAL)
            self.stall = max(self.stall, loop.time() - before - INTERVAL)
