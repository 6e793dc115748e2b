"""Changes to the files of a log that recovery makes. Nothing is deleted but what clients had deleted: what is bad is
set aside under a name that says so.

They are done after everything was looked at, in order. A crash in between leaves what is found, and repaired, again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from aioproducer.broker.storage.files import Files
from aioproducer.protocol.primitives import Buffer

TORN = ".torn"
"""What a crash left of a write, and what lay behind it."""

DAMAGED = ".damaged"
"""What could not be read, and no crash explains."""

_RECOVERED = ".recovered"
_CHUNK = 1024 * 1024


class Repair(Protocol):
    @property
    def path(self) -> str:
        """What changes, or goes."""

    def run(self, files: Files) -> None:
        """Raises OSError."""


class Remove(NamedTuple):
    """Clients had deleted all it holds."""

    path: str

    def run(self, files: Files) -> None:
        files.remove(self.path)


class SetAside(NamedTuple):
    """A whole file gets another name."""

    path: str
    suffix: str

    def run(self, files: Files) -> None:
        files.rename(self.path, _free(files, self.path + self.suffix))


class Cut(NamedTuple):
    """A file ends at ``position``; what was behind that is kept in another one."""

    path: str
    position: int

    def run(self, files: Files) -> None:
        size = files.size(self.path)
        if not self.position:
            (SetAside(self.path, TORN) if _has_anything(files, self.path, 0, size) else Remove(self.path)).run(files)
            return
        _keep(files, self.path, self.position, size, TORN)
        files.truncate(self.path, self.position)
        # Else what was cut off could come back behind what is written there next.
        files.sync(self.path)


class Rewrite(NamedTuple):
    """A file with other parts: stretches of its own, as position and end, and new batches. What it had beside those is
    kept in other files."""

    path: str
    parts: Sequence[tuple[int, int] | Buffer]

    def run(self, files: Files) -> None:
        new = self.path + _RECOVERED
        files.make_directory(self.path.rpartition("/")[0])
        files.remove(new)
        kept = 0
        for part in self.parts:
            if isinstance(part, tuple):
                position, end = part
                _keep(files, self.path, kept, position, DAMAGED)
                kept = end
                for chunk in _chunks(files, self.path, position, end):
                    files.append(new, [chunk])
            else:
                files.append(new, [part])
        _keep(files, self.path, kept, files.size(self.path), DAMAGED)
        files.sync(new)
        files.rename(new, self.path)


class Restore(NamedTuple):
    """A small file gets the content that it should have."""

    path: str
    content: bytes

    def run(self, files: Files) -> None:
        _keep(files, self.path, 0, files.size(self.path), DAMAGED)
        new = self.path + _RECOVERED
        files.remove(new)
        files.append(new, [self.content])
        files.sync(new)
        files.rename(new, self.path)


class Keep(NamedTuple):
    """A copy of a file, which changes after that."""

    path: str
    position: int
    suffix: str

    def run(self, files: Files) -> None:
        _keep(files, self.path, self.position, files.size(self.path), self.suffix)


def _has_anything(files: Files, path: str, position: int, end: int) -> bool:
    return any(chunk.strip(b"\0") for chunk in _chunks(files, path, position, end))


def _keep(files: Files, path: str, position: int, end: int, suffix: str) -> None:
    """Copies part of a file. Zeros, which a crash leaves where nothing was written, are nothing to keep."""
    if not _has_anything(files, path, position, end):
        return
    copy = _free(files, f"{path}.{position}{suffix}")
    for chunk in _chunks(files, path, position, end):
        files.append(copy, [chunk])
    files.sync(copy)


def _chunks(files: Files, path: str, position: int, end: int) -> Iterator[bytes]:
    while position < end:
        yield files.read(path, position, min(_CHUNK, end - position))
        position += _CHUNK


def _free(files: Files, path: str) -> str:
    """This name, or another one that begins with it and is not used."""
    directory, _, name = path.rpartition("/")
    used = set(files.names(directory))
    numbered = (f"{name}.{number}" for number in itertools.count(1))
    free = next(one for one in itertools.chain([name], numbered) if one not in used)
    return f"{directory}/{free}" if directory else free
