"""Files in memory that lose whatever was not synced, as badly as a machine that crashes may."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from aioproducer.errors import DataDirectoryException
from aioproducer.protocol.primitives import Buffer

SECTOR = 64
"""Bytes that are written as one; a disk's are 512 or 4096. Small ones tear small batches too."""


class Crash(BaseException):
    """The machine stops here. No code in between may take it for an error that it can handle."""


@dataclass
class _Inode:
    """A file's content as the page cache has it and as the disk has it, and the operations between the two."""

    cached: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    unsynced: list[Callable[[bytearray, Random], None]] = field(default_factory=list)

    def settle(self, random: Random) -> None:
        content = bytearray(self.synced)
        for operation in self.unsynced:
            operation(content, random)
        self.cached, self.synced, self.unsynced = content, bytes(content), []


@dataclass
class _Directory:
    """Names and what they stand for; ``unsynced`` are changes: names that go, and names that come."""

    cached: dict[str, _Inode | _Directory] = field(default_factory=dict)
    synced: dict[str, _Inode | _Directory] = field(default_factory=dict)
    unsynced: list[tuple[str | None, str | None, _Inode | _Directory | None]] = field(default_factory=list)

    def change(self, gone: str | None, new: str | None, entry: _Inode | _Directory | None) -> None:
        _apply(self.cached, gone, new, entry)
        self.unsynced.append((gone, new, entry))

    def settle(self, random: Random) -> None:
        for change in self.unsynced:
            if random.random() < 0.5:
                _apply(self.synced, *change)
        self.cached, self.unsynced = dict(self.synced), []
        for entry in self.cached.values():
            entry.settle(random)


class FaultyFiles:
    """:class:`Files` of a machine that can crash.

    :meth:`crash` keeps what was synced, and of everything else any part: of a write each sector or not, so that holes
    full of zeros or of older bytes remain; of changes to a directory each or not, renames included. Operation number
    ``crash_at`` is done in part and raises :class:`Crash`; ``error_at`` raises this error, once, in place of the work.
    """

    def __init__(self, seed: int = 0) -> None:
        self._random = Random(seed)
        self._root = _Directory()
        self._locked = False
        self.operations = 0
        self.crash_at: int | None = None
        self.error_at: dict[int, OSError] = {}
        self.names_of_operations: list[str] = []

    def __str__(self) -> str:
        return "memory"

    def crash(self) -> None:
        """What a restarted machine finds."""
        self._root.settle(self._random)
        self._locked = False
        self.crash_at = None

    def _operation(self, name: str) -> bool:
        """Counts; whether the machine crashes in the middle of this one."""
        self.operations += 1
        self.names_of_operations.append(name)
        error = self.error_at.pop(self.operations, None)
        if error is not None:
            raise error
        return self.operations == self.crash_at

    def _directory(self, path: str) -> _Directory:
        if not path:
            return self._root
        found = self._root.cached.get(path)
        if not isinstance(found, _Directory):
            raise FileNotFoundError(path)
        return found

    def _place(self, path: str) -> tuple[_Directory, str]:
        directory, _, name = path.rpartition("/")
        return self._directory(directory), name

    def _file(self, path: str) -> _Inode | None:
        try:
            directory, name = self._place(path)
        except FileNotFoundError:
            return None
        found = directory.cached.get(name)
        return found if isinstance(found, _Inode) else None

    def _known_file(self, path: str) -> _Inode:
        found = self._file(path)
        if found is None:
            raise FileNotFoundError(path)
        return found

    # Files

    def lock(self) -> None:
        if self._locked:
            raise DataDirectoryException("in use")
        self._locked = True

    def unlock(self) -> None:
        self._locked = False

    def names(self, directory: str) -> list[str]:
        try:
            return sorted(self._directory(directory).cached)
        except FileNotFoundError:
            return []

    def size(self, path: str) -> int:
        found = self._file(path)
        return 0 if found is None else len(found.cached)

    def read(self, path: str, position: int, size: int) -> bytes:
        return bytes(self._known_file(path).cached[position : position + size])

    def append(self, path: str, parts: Sequence[Buffer]) -> None:
        dies = self._operation(f"append {path}")
        data = b"".join(parts)
        if dies:
            data = data[: self._random.randrange(len(data) + 1)]
        found = self._file(path)
        if found is None:
            directory, name = self._place(path)
            found = _Inode()
            directory.change(None, name, found)
        at = len(found.cached)
        found.cached += data
        found.unsynced.append(lambda content, random: _write_in_part(content, at, data, random))
        if dies:
            raise Crash

    def truncate(self, path: str, size: int) -> None:
        dies = self._operation(f"truncate {path}")
        found = self._known_file(path)
        del found.cached[size:]
        found.unsynced.append(lambda content, random: _truncate_or_not(content, size, random))
        if dies:
            raise Crash

    def sync(self, path: str) -> None:
        if self._operation(f"sync {path}"):
            raise Crash
        found = self._known_file(path)
        found.synced, found.unsynced = bytes(found.cached), []

    def make_directory(self, path: str) -> None:
        dies = self._operation(f"make {path}")
        if path not in self._root.cached:
            self._root.change(None, path, _Directory())
        if dies:
            raise Crash

    def rename(self, old: str, new: str) -> None:
        dies = self._operation(f"rename {old} {new}")
        directory, name = self._place(old)
        _, new_name = self._place(new)
        directory.change(name, new_name, directory.cached[name])
        if dies:
            raise Crash

    def remove(self, path: str) -> None:
        dies = self._operation(f"remove {path}")
        directory, name = self._place(path)
        if name in directory.cached:
            directory.change(name, None, None)
        if dies:
            raise Crash

    def sync_directory(self, path: str) -> None:
        if self._operation(f"sync {path}/"):
            raise Crash
        directory = self._directory(path)
        directory.synced, directory.unsynced = dict(directory.cached), []


def _apply(
    names: dict[str, _Inode | _Directory], gone: str | None, new: str | None, entry: _Inode | _Directory | None
) -> None:
    if gone is not None:
        names.pop(gone, None)
    if new is not None and entry is not None:
        names[new] = entry


def _write_in_part(content: bytearray, at: int, data: bytes, random: Random) -> None:
    start, end = at, at + len(data)
    part = random.choice((0.0, 0.5, 0.9, 1.0))
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        if random.random() < part:
            if len(content) < stop:
                content += bytes(stop - len(content))
            content[start:stop] = data[start - at : stop - at]
        start = stop


def _truncate_or_not(content: bytearray, size: int, random: Random) -> None:
    if random.random() < 0.5:
        del content[size:]
