"""Writes lines to a file in a thread, so that a slow disk does not hold up the event loop."""

from __future__ import annotations

import logging
import os
import threading

from aioproducer.delivery_log.events import event
from aioproducer.errors import IllegalStateException

log = logging.getLogger(__name__)

CHUNK = 65536
"""How many bytes are worth a write."""


class FileSink:
    """Appends lines to the file ``path``; OSError if it cannot be opened.

    Lines reach the system after at most ``interval`` seconds or 64 KiB; a process that is killed loses no more than
    that, and leaves at most one torn line. At most ``capacity`` bytes wait for a slow disk: lines beyond that are lost,
    and counted in a separate line (event ``lost``). ``close`` waits up to ``patience`` seconds for the remaining lines.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        capacity: int = 8 << 20,
        interval: float = 0.5,
        patience: float = 5.0,
    ) -> None:
        self.path = os.fspath(path)
        self.lost = 0
        """Lines that are not in the file."""
        self._capacity = capacity
        self._interval = interval
        self._patience = patience
        self._lines: list[bytes] = []
        self._size = 0
        self._unreported = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by the thread
        self._torn = self._ends_torn()

    def _ends_torn(self) -> bool:
        """Whether the file's last line, of an earlier process, has no end."""
        with open(self.path, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            if end == 0:
                return False
            file.seek(end - 1)
            return file.read(1) != b"\n"

    def write(self, line: bytes) -> None:
        """Takes a line, without line end; never waits for the disk."""
        with self._changed:
            if self._closed:
                raise IllegalStateException(f"the sink of {self.path} is closed")
            if self._size + len(line) > self._capacity:
                self._lose(1)
                return
            self._lines.append(line)
            self._size += len(line) + 1
            if self._size >= CHUNK:
                self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"aioproducer {self.path}", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Writes what is left. Closing twice is harmless."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is None:
            self._file.close()
            return
        thread.join(self._patience)
        if thread.is_alive():
            log.error("%s: %d bytes are not written yet after %.1f s", self.path, self._size, self._patience)

    def _lose(self, lines: int) -> None:
        self.lost += lines
        self._unreported += lines

    def _run(self) -> None:
        closed = False
        while not closed:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._size >= CHUNK, self._interval)
                lines, self._lines = self._lines, []
                size = self._size
                unreported, self._unreported = self._unreported, 0
                closed = self._closed
            if lines or unreported:
                self._append(lines, unreported)
            with self._changed:
                self._size -= size
        self._file.close()

    def _append(self, lines: list[bytes], unreported: int) -> None:
        tail = [event("lost", count=unreported)] if unreported else []
        # A line torn by an earlier process ends here, and the following lines are whole.
        chunk = memoryview((b"\n" if self._torn else b"") + b"\n".join([*lines, *tail, b""]))
        try:
            while chunk:
                chunk = chunk[self._file.write(chunk) :]
            self._torn = False
        except OSError as error:
            log.error("%s: up to %d lines of the delivery log are lost: %s", self.path, len(lines), error)
            self._torn = True
            with self._changed:
                self._lose(len(lines))
                self._unreported += unreported
