"""Log lines for standard error, written by a thread, because the reader may be slow or read nothing at all."""

from __future__ import annotations

import os
import queue
import sys
from collections.abc import Callable
from threading import Thread

MOST_WAITING = 1000
"""Lines that may wait to be written; further lines are dropped and counted."""

PATIENCE = 1.0
"""Seconds that :meth:`LogLines.close` waits for the last line."""


class LogLines:
    """Takes lines without waiting. A thread of its own calls ``write`` with one at a time."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._waiting: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self._dropped = 0
        # A daemon: without a reader it would otherwise keep the process alive.
        self._thread = Thread(target=self._run, name="aioproducer-log-lines", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Returns when all is written, or after PATIENCE seconds."""
        try:
            self._waiting.put(None, timeout=PATIENCE)
        except queue.Full:
            return
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        while (line := self._waiting.get()) is not None:
            self._write(line)
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                self._write(f"warning: {dropped} log lines were dropped, because they were not read in time")


def write_to_standard_error(line: str) -> None:
    """Bypasses Python's buffer: a thread that blocks inside it also blocks the end of the process."""
    try:
        descriptor = sys.stderr.fileno()
    except (OSError, ValueError):
        print(line, file=sys.stderr, flush=True)  # not a real file: a test put its own there
        return
    left = memoryview(f"{line}\n".encode(errors="backslashreplace"))
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        pass  # closed
