"""The operations of a file system that a data directory needs.

Tests replace it with a file system that loses, tears and reorders writes that were not synced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from aioproducer.errors import DataDirectoryException
from aioproducer.process.descriptors import SCARCE
from aioproducer.protocol.primitives import Buffer

LOCK_FILE = ".lock"

_ATTEMPTS = 600
_BETWEEN_ATTEMPTS = 0.05
"""Seconds. The thread that writes files may wait; after half a minute the failure is reported."""

_PRIVATE, _PRIVATE_DIRECTORY = 0o600, 0o700
"""Only the owner may read: the files have records, and the secrets of configs."""

T = TypeVar("T")


class Files(Protocol):
    """Files by their path below the data directory. Every operation may raise :class:`OSError`.

    Written bytes survive a crash of the machine only after :meth:`sync`; a new or renamed file survives it only after
    :meth:`sync_directory` of its directory.
    """

    def lock(self) -> None:
        """Locks the directory for this process. Raises :class:`DataDirectoryException` if another one holds it."""

    def unlock(self) -> None: ...

    def names(self, directory: str) -> list[str]:
        """Sorted names of files and directories; none if there is no such directory."""

    def size(self, path: str) -> int:
        """Bytes of a file; 0 if there is none."""

    def read(self, path: str, position: int, size: int) -> bytes:
        """Bytes from ``position`` on, fewer than ``size`` only where the file ends."""

    def append(self, path: str, parts: Sequence[Buffer]) -> None:
        """Writes at the end of a file, which is created if there is none."""

    def truncate(self, path: str, size: int) -> None: ...

    def sync(self, path: str) -> None: ...

    def make_directory(self, path: str) -> None:
        """Creates a directory; no error if it exists."""

    def rename(self, old: str, new: str) -> None:
        """Renames a file, and replaces one of the new name atomically."""

    def remove(self, path: str) -> None:
        """Removes a file, or a directory with its contents; no error if there is none. Of a link it removes the link
        alone."""

    def sync_directory(self, path: str) -> None:
        """Syncs the names in a directory; ``""`` is the data directory itself."""


def check_size(files: Files, path: str, size: int) -> None:
    """Raises OSError unless a file has this size after :meth:`Files.append`: another program has changed or removed it,
    and what was appended is not where it belongs."""
    found = files.size(path)
    if found != size:
        raise OSError(errno.EIO, f"another program has changed {path}: it has {found} bytes, expected {size}")


class OsFiles:
    """The files of the operating system. Each operation opens its file, so thousands of partitions keep none open."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._prefix = f"{root}/"  # a Path would intern the name of every partition
        self._lock: int | None = None

    def __str__(self) -> str:
        return str(self._root)

    def lock(self) -> None:
        try:
            import fcntl  # the broker runs without a data directory where this is missing
        except ImportError as error:
            raise DataDirectoryException("a data directory needs a POSIX system: it cannot be locked here") from error
        try:
            self._root.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
            descriptor = os.open(self._root / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        except OSError as error:
            raise DataDirectoryException(f"cannot use the data directory {self._root}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise DataDirectoryException(
                f"the data directory {self._root} is in use: another broker holds {self._root / LOCK_FILE}; "
                "stop it, or choose another directory"
            ) from error
        self._lock = descriptor

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def names(self, directory: str) -> list[str]:
        try:
            return sorted(os.listdir(self._root / directory))
        except FileNotFoundError:
            return []

    def size(self, path: str) -> int:
        try:
            return os.stat(self._prefix + path).st_size
        except FileNotFoundError:
            return 0

    def read(self, path: str, position: int, size: int) -> bytes:
        with open(self._prefix + path, "rb", buffering=0) as file:
            file.seek(position)
            data = file.read(size) or b""
            while len(data) < size:
                more = file.read(size - len(data))
                if not more:
                    break
                data += more
            return data

    def append(self, path: str, parts: Sequence[Buffer]) -> None:
        with _patiently(lambda: open(self._prefix + path, "ab", buffering=0, opener=_create)) as file:
            left = memoryview(b"".join(parts))
            while left:
                left = left[file.write(left) :]

    def truncate(self, path: str, size: int) -> None:
        os.truncate(self._root / path, size)

    def sync(self, path: str) -> None:
        self._sync(path, os.O_RDWR)

    def make_directory(self, path: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._prefix + path, _PRIVATE_DIRECTORY)

    def rename(self, old: str, new: str) -> None:
        os.replace(self._root / old, self._root / new)

    def remove(self, path: str) -> None:
        target = self._root / path
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def sync_directory(self, path: str) -> None:
        self._sync(path, os.O_RDONLY)

    def _sync(self, path: str, flags: int) -> None:
        descriptor = _patiently(lambda: os.open(self._prefix + path, flags | os.O_CLOEXEC))
        try:
            _flush(descriptor)
        finally:
            os.close(descriptor)


def _create(path: str, flags: int) -> int:
    return os.open(path, flags, _PRIVATE)


def _patiently(open_file: Callable[[], T]) -> T:
    """Opens a file to write to. While the process has no file descriptor left, tries again."""
    for _ in range(_ATTEMPTS):
        try:
            return open_file()
        except OSError as error:
            if error.errno not in SCARCE:
                raise
        time.sleep(_BETWEEN_ATTEMPTS)
    return open_file()


def _flush(descriptor: int) -> None:
    import fcntl

    # On macOS fsync leaves data in the drive's cache; F_FULLFSYNC writes it to the disk.
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        fcntl.fcntl(descriptor, full)
    else:
        os.fsync(descriptor)
