"""Lines for standard output, written by a thread, because the reader may be slow or gone."""

from __future__ import annotations

import asyncio
import os
import queue
import sys
from threading import Thread

MOST_WAITING = 1 << 20
"""Bytes that may wait to be written before :meth:`LineOutput.put` waits."""

PATIENCE = 1.0
"""Seconds that :meth:`LineOutput.close` waits for a reader that takes nothing."""


class LineOutput:
    """Takes lines while there is room. Raises BrokenPipeError when the reader is gone, or another OSError."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: list[str] = []
        self._chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._waiting = 0
        self._progress = asyncio.Event()
        self._error: OSError | None = None
        # A daemon: without a reader it would otherwise keep the process alive.
        Thread(target=self._run, name="aioproducer output", daemon=True).start()

    async def put(self, line: str) -> None:
        """Takes a line. Lines of the same turn of the loop are written together."""
        if not self._lines:
            self._loop.call_soon(self._hand_over)
        self._lines.append(line)
        while self._waiting > MOST_WAITING and self._error is None:
            await self._written()
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        """Returns when all is written, or when the reader has taken nothing for PATIENCE seconds."""
        self._hand_over()
        try:
            while self._waiting and self._error is None:
                async with asyncio.timeout(PATIENCE):
                    await self._written()
        except TimeoutError:
            pass  # the output is not read
        self._chunks.put(b"")

    def _hand_over(self) -> None:
        if self._lines:
            chunk = "".join(f"{line}\n" for line in self._lines).encode()
            self._lines.clear()
            self._waiting += len(chunk)
            self._chunks.put(chunk)

    async def _written(self) -> None:
        self._progress.clear()
        await self._progress.wait()

    def _progressed(self, size: int, error: OSError | None) -> None:
        self._waiting -= size
        self._error = self._error or error
        self._progress.set()

    # In the thread

    def _run(self) -> None:
        while chunk := self._chunks.get():
            error = None
            try:
                _write(chunk)
            except OSError as failed:
                error = failed
            try:
                self._loop.call_soon_threadsafe(self._progressed, len(chunk), error)
            except RuntimeError:
                return  # the loop has ended
            if error is not None:
                return


def _write(chunk: bytes) -> None:
    """Bypasses Python's buffer: a thread that blocks inside it also blocks the end of the process."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        sys.stdout.write(chunk.decode())  # not a real file: a test put its own there
        return
    left = memoryview(chunk)
    while left:
        left = left[os.write(descriptor, left) :]
