"""How long the event loop stood still."""

from __future__ import annotations

import asyncio
import contextlib
import time
from types import TracebackType
from typing import Self

INTERVAL = 0.002


class Heartbeat:
    """A task that wants to run every 2 ms.

    ``late`` tells of each such moment how many seconds later it came, a stall that covers many of them counted for
    each; ``stall`` is the longest. The clock is not the loop's: uvloop's own stands still while a callback runs.
    """

    def __init__(self) -> None:
        self.late: list[float] = []

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
            due = time.perf_counter() + INTERVAL
            await asyncio.sleep(INTERVAL)
            now = time.perf_counter()
            self.late.append(max(0.0, now - due))
            missed = int((now - due) / INTERVAL)
            self.late += [now - due - number * INTERVAL for number in range(1, missed + 1)]
