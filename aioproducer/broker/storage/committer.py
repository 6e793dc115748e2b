"""Starts commits, and calls back those that wait for them."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from functools import partial

from aioproducer.broker.storage.commit import Commit
from aioproducer.broker.storage.data_directory import DataDirectory
from aioproducer.broker.storage.journal import JournalCopy

log = logging.getLogger(__name__)


class FlushPolicy(Enum):
    """When to sync written files: before changes are acknowledged, at intervals, or never (the system writes them)."""

    ALWAYS = "always"
    INTERVAL = "interval"
    NEVER = "never"


class Committer:
    """Runs one commit after the other in its own thread, as long as there are changes.

    Changes made during a commit are written together by the next one and synced once: a group commit. The event loop
    waits for the disk only to read. While the journal is copied, a piece of the copy follows each commit, so an
    acknowledgement waits for one piece at most.
    """

    def __init__(self, directory: DataDirectory, policy: FlushPolicy, interval_ms: int) -> None:
        self._directory = directory
        self._policy = policy
        self._interval_ms = interval_ms
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="aioproducer-storage")
        self._waiting: deque[tuple[int, Callable[[bool], object]]] = deque()
        self._committed = 0
        self._running: asyncio.Future[None] | None = None
        self._scheduled = False
        self._has_run_in_thread = False
        self._sync_timer: asyncio.TimerHandle | None = None
        self._sync_due = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = self._closed = False

    def changed(self) -> None:
        """There is something to commit."""
        if not self._closed:
            self._schedule()

    def when_committed(self, callback: Callable[[bool], object]) -> None:
        """Calls back with True once all changes so far are committed, maybe at once; with False if that fails."""
        directory = self._directory
        if directory.failure is not None:
            callback(False)
        elif self._committed == directory.changes:
            callback(True)
        else:
            self._waiting.append((directory.changes, callback))
            self._schedule()

    def is_urgent(self) -> bool:
        """Whether a commit is to be begun, or one that has run is to be ended: requests wait for that."""
        return self._scheduled or self._has_run_in_thread

    async def commit(self) -> None:
        """Returns when all changes so far are on disk, under every policy. Raises OSError."""
        self._sync_due = True
        await self._idle.wait()
        while self._directory.failure is None and (self._committed < self._directory.changes or self._sync_due):
            self._start()
            await self._idle.wait()
        if self._directory.failure is not None:
            raise self._directory.failure

    async def close(self) -> None:
        """Commits the last changes, and closes in any case. Raises OSError if this commit is the first to fail."""
        self._closing = True
        try:
            if self._directory.failure is None:
                await self.commit()
        finally:
            await self._idle.wait()
            self._closed = True
            if self._sync_timer is not None:
                self._sync_timer.cancel()
            self._executor.shutdown()

    def _schedule(self) -> None:
        # In the next step of the loop: the changes of one step belong together.
        if not self._scheduled and self._running is None:
            self._scheduled = True
            self._loop.call_soon(self._start)

    def _start(self) -> None:
        self._scheduled = False
        directory = self._directory
        if self._running is not None or directory.failure is not None:
            return
        commit = directory.begin(sync=self._policy is FlushPolicy.ALWAYS or self._sync_due)
        self._sync_due &= commit.changes < directory.changes  # the next commit has the rest
        self._run(commit.run, partial(self._ended, commit))

    def _run(self, write: Callable[[], None], then: Callable[[OSError | None], None]) -> None:
        self._idle.clear()
        self._running = self._loop.run_in_executor(self._executor, self._in_thread, write)
        self._running.add_done_callback(partial(self._has_run, then))

    def _in_thread(self, write: Callable[[], None]) -> None:
        try:
            write()
        finally:
            self._has_run_in_thread = True

    def _has_run(self, then: Callable[[OSError | None], None], run: asyncio.Future[None]) -> None:
        self._running = None
        self._has_run_in_thread = False
        error = run.exception()
        if error is not None and not isinstance(error, OSError):
            log.error("a commit failed with an unexpected error", exc_info=error)
            error = OSError(repr(error))
        self._idle.set()
        then(error)

    def _ended(self, commit: Commit, error: OSError | None) -> None:
        self._directory.end(commit, error)
        self._committed = commit.changes
        self._call_waiting()
        if error is None:
            if not self._copy() and self._committed < self._directory.changes:
                self._schedule()
            if self._policy is FlushPolicy.INTERVAL and self._sync_timer is None and self._directory.has_unsynced:
                self._sync_timer = self._loop.call_later(self._interval_ms / 1000, self._sync)

    def _call_waiting(self) -> None:
        failed = self._directory.failure is not None
        while self._waiting and (failed or self._waiting[0][0] <= self._committed):
            self._waiting.popleft()[1](not failed)

    def _copy(self) -> bool:
        """Starts to write a piece of the journal's copy, if the journal is being copied. Returns whether it does."""
        copy = self._directory.journal.copy
        if copy is None or self._running is not None or self._closing:
            return False
        self._run(partial(copy.advance, self._directory.files), partial(self._copied, copy))
        return True

    def _copied(self, copy: JournalCopy, error: OSError | None) -> None:
        if error is not None:
            self._directory.fail(error)
            self._call_waiting()
        elif copy.is_ready or self._sync_due or self._committed < self._directory.changes:
            self._schedule()
        else:
            self._copy()

    def _sync(self) -> None:
        self._sync_timer = None
        self._sync_due = True
        self._start()
