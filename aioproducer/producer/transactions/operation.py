"""A call that is completed even if those who wait for it give up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from aioproducer.errors import KafkaError
from aioproducer.tasks.own_task import start_task

log = logging.getLogger(__name__)


class Operation:
    """One such call, under way in a task of its own; ``name`` is the method that users call."""

    def __init__(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self.name = name
        self._task = start_task(work, name)
        self._waiting = 0
        self._why: KafkaError | None = None

    def done(self) -> bool:
        return self._task.done()

    async def ended(self, until: float) -> bool:
        """Waits for its end until then, by the clock of the loop; whether it has come."""
        self._waiting += 1
        try:
            await asyncio.wait([self._task], timeout=max(until - asyncio.get_running_loop().time(), 0))
        finally:
            self._waiting -= 1
        return self._task.done()

    async def settled(self) -> None:
        """Waits for its end, whatever that is."""
        await asyncio.wait([self._task])

    def result(self) -> None:
        """Raises what it ended with."""
        if self._task.cancelled() and self._why is not None:
            raise self._why.fresh()
        self._task.result()

    def leave(self) -> None:
        """It has ended; what it failed with is logged if nobody waits to be told."""
        failed = None if self._task.cancelled() else self._task.exception()
        if failed is not None and not self._waiting:
            log.warning("%s failed, and nobody was told: %s", self.name, failed)

    def cancel(self, why: KafkaError) -> None:
        """Ends it at once, unless it is itself the caller; everything that waits for it is told."""
        if self._task is not asyncio.current_task():
            self._why = why
            self._task.cancel()
