"""A file or standard input as chunks of bytes. A thread reads and unpacks them, so that the event loop never waits."""

from __future__ import annotations

import asyncio
import errno
import gzip
import io
import lzma
import os
import stat
import sys
import threading
import zlib
from collections import deque
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from aioproducer.cli.running import InputError

CHUNK = 256 * 1024
READ_AHEAD = 4
"""How many chunks may wait to be taken."""

STDIN = "-"


class ByteSource:
    """``async for chunk in source``; ``stop()`` ends that early, as if the file ended.

    ``size`` and ``position`` count the bytes of the file on disk, compressed or not; ``size`` is None if it is unknown.
    Raises InputError, or OSError when the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.name = "standard input" if path == STDIN else path
        self.size: int | None = None
        self.position = 0
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._chunks: deque[tuple[bytes, int, Exception | None]] = deque()
        self._news = asyncio.Event()
        self._room = threading.Semaphore(READ_AHEAD)
        self._stopped = False
        if path == STDIN:
            if sys.stdin is None:
                raise InputError("there is none")
        else:
            status = os.stat(path)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            if stat.S_ISREG(status.st_mode):
                self.size = status.st_size
        # A daemon: a thread that waits at a terminal or a pipe cannot be woken, and must not keep the process alive.
        threading.Thread(target=self._read, name="aioproducer input", daemon=True).start()

    def stop(self) -> None:
        """Ends the chunks."""
        self._stopped = True
        self._news.set()
        self._room.release()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            while not self._chunks and not self._stopped:
                self._news.clear()
                await self._news.wait()
            if self._stopped:
                return
            chunk, self.position, error = self._chunks.popleft()
            self._room.release()
            if error is not None:
                raise error
            if not chunk:
                return
            yield chunk

    # In the thread

    def _read(self) -> None:
        try:
            with _open_stdin() if self._path == STDIN else open(self._path, "rb") as raw:
                data = _decompressed(raw, self._path)
                while self._put(data.read1(CHUNK), raw):
                    pass
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            self._hand_over(b"", 0, InputError(f"cannot be decompressed: {error}"))
        except Exception as error:
            self._hand_over(b"", 0, error)

    def _put(self, chunk: bytes, raw: BinaryIO | io.RawIOBase) -> bool:
        position = raw.tell() if self.size is not None else 0
        self._room.acquire()
        self._hand_over(chunk, position, None)
        return bool(chunk) and not self._stopped

    def _hand_over(self, chunk: bytes, position: int, error: Exception | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._arrived, chunk, position, error)
        except RuntimeError:
            self._stopped = True  # the loop is closed and takes no more chunks

    def _arrived(self, chunk: bytes, position: int, error: Exception | None) -> None:
        self._chunks.append((chunk, position, error))
        self._news.set()


class _Stdin(io.FileIO):
    """Standard input without ``sys.stdin``: its lock, held by a thread that waits, would block Python's exit."""

    def __init__(self) -> None:
        super().__init__(sys.stdin.fileno(), closefd=False)

    read1 = io.FileIO.read


def _open_stdin() -> Any:
    try:
        return _Stdin()
    except (OSError, ValueError):  # not a real file: an application put its own there
        return sys.stdin.buffer


def _decompressed(raw: Any, path: str) -> Any:
    match Path(path).suffix:
        case ".gz":
            return gzip.GzipFile(fileobj=raw, mode="rb")
        case ".xz":
            return lzma.LZMAFile(raw)
        case ".zst":
            return _zstd(raw)
        case _:
            return raw


def _zstd(raw: Any) -> Any:
    try:
        return import_module("compression.zstd").ZstdFile(raw)  # in Python's own library from 3.14 on
    except ImportError:
        pass
    try:
        return import_module("zstandard").ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    except ImportError:
        raise InputError("unpacking it needs the library zstandard: pip install 'aioproducer[zstd]'") from None
