"""Lines of a log for standard error, written by a thread: whoever reads it may be slow, or read nothing at all."""

from __future__ import annotations

import os
import queue
import sys
from collections.abc import Callable
from threading import Thread

MOST_WAITING = 1000
"""Lines that may wait to be written; further ones are dropped, and counted."""

PATIENCE = 1.0
"""Seconds that :meth:`LogLines.close` waits until all is written."""


class LogLines:
    """Takes lines without ever waiting. ``write`` is called with one at a time, in a thread of its own."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._waiting: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self._dropped = 0
        # A daemon: one that nobody reads from must not keep the process from its end.
        self._thread = Thread(target=self._run, name="aioproducer-log-lines", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Returns when all is written, or when that takes too long."""
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
                self._write(f"warning: {dropped} lines of the log were dropped, as nobody read them in time")


def write_to_standard_error(line: str) -> None:
    """Past Python's buffer: a thread that is held up in it would hold up the end of the process, too."""
    try:
        descriptor = sys.stderr.fileno()
    except (OSError, ValueError):
        print(line, file=sys.stderr, flush=True)  # none of the system's: a test reads it
        return
    left = memoryview(f"{line}\n".encode(errors="backslashreplace"))
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        pass  # closed: there is nobody to tell
