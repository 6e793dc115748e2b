"""Long-lived tasks that may not die unnoticed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from aioproducer.tasks.own_task import start_task

log = logging.getLogger(__name__)


class Supervisor:
    """Keeps references to tasks (asyncio itself does not) and reports the first that ends unexpectedly.

    ``on_crash(error)`` is called once, with what the task raised, or with CancelledError if other code cancelled it:
    waiters can then fail with that cause, so that nothing ever waits for a dead task.
    """

    def __init__(self, on_crash: Callable[[BaseException], None]) -> None:
        self._on_crash = on_crash
        # In the order they started: actions on all of them happen in the same order in every run.
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._crashed = False

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = start_task(work, name)
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    def launch(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """``spawn`` for a task whose handle is not needed."""
        _ = self.spawn(work, name)

    def cancel(self, task: asyncio.Task[None]) -> None:
        """Cancels a task on purpose, without waiting for its end."""
        self._stopping.add(task)
        task.cancel()

    def cancel_all(self) -> None:
        """Ends all tasks except the caller's."""
        current = asyncio.current_task()
        for task in self._tasks:
            if task is not current and not task.done():
                self.cancel(task)

    def crash(self, error: BaseException) -> None:
        """Reports an error that is a bug: from a task, or from a callback of the event loop."""
        if not isinstance(error, asyncio.CancelledError):
            fields = {"event": "client_failed", "error": type(error).__name__}
            log.error("unforeseen error: everything pending fails with it", exc_info=error, extra={"kafka": fields})
        if not self._crashed:
            self._crashed = True
            self._on_crash(error)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        stopped_by_us = task in self._stopping
        self._stopping.discard(task)
        if task.cancelled():
            if not stopped_by_us:
                self.crash(asyncio.CancelledError(f"task {task.get_name()} was cancelled from outside"))
        elif (error := task.exception()) is not None:
            self.crash(error)

    async def stop(self) -> None:
        """Ends all tasks, and waits until they have ended."""
        self.cancel_all()
        ending = self._tasks.keys() - {asyncio.current_task()}
        if ending:
            await asyncio.wait(ending)
