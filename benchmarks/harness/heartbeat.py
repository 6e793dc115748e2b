"""Measures for how long the event loop stood still."""

from __future__ import annotations

import asyncio
import contextlib
import time
from types import TracebackType
from typing import Self

INTERVAL = 0.002


class Heartbeat:
    """A task that wants to run every 2 ms.

    ``late`` has for each such moment how many seconds later it came, a stall that covers many of them counted for
    each; ``stall`` is the longest. The clock is not the loop's: uvloop's own stands still while a callback runs.
    ``computing`` is the part of each stall in which the loop's thread had a CPU; for the rest of it other threads had
    all of them, most often the broker's.
    """

    def __init__(self) -> None:
        self.late: list[float] = []
        self.computing: list[float] = []

    @property
    def stall(self) -> float:
        return max(self.late, default=0.0)

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
        while True:
            due, computed = time.perf_counter() + INTERVAL, time.thread_time() + INTERVAL
            await asyncio.sleep(INTERVAL)
            late, computing = time.perf_counter() - due, time.thread_time() - computed
            for number in range(1 + max(0, int(late / INTERVAL))):
                self.late.append(max(0.0, late - number * INTERVAL))
                self.computing.append(max(0.0, computing - number * INTERVAL))
