"""A call that completes even if its callers give up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from aioproducer.errors import KafkaError
from aioproducer.tasks.own_task import start_task

log = logging.getLogger(__name__)


class Operation:
    """One such call, in its own task; ``name`` is the method that users call."""

    def __init__(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self.name = name
        self._task = start_task(work, name)
        self._waiting = 0
        self._why: KafkaError | None = None

    def done(self) -> bool:
        return self._task.done()

    async def ended(self, until: float) -> bool:
        """Waits for its end, until then by the loop's clock; returns whether it has ended."""
        self._waiting += 1
        try:
            await asyncio.wait([self._task], timeout=max(until - asyncio.get_running_loop().time(), 0))
        finally:
            self._waiting -= 1
        return self._task.done()

    async def settled(self) -> None:
        """Waits for its end; raises nothing of its outcome."""
        await asyncio.wait([self._task])

    def result(self) -> None:
        """Raises what it ended with."""
        if self._task.cancelled() and self._why is not None:
            raise self._why.fresh()
        self._task.result()

    def leave(self) -> None:
        """It has ended; its error is logged if no caller waits for it."""
        failed = None if self._task.cancelled() else self._task.exception()
        if failed is not None and not self._waiting:
            log.warning("%s failed, and no caller was waiting: %s", self.name, failed)

    def cancel(self, why: KafkaError) -> None:
        """Cancels it, unless it is itself the caller; all waiters are notified."""
        if self._task is not asyncio.current_task():
            self._why = why
            self._task.cancel()
