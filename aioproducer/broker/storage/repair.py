"""The changes that recovery makes to the files of a log, and the error for damage that a start does not repair.

A repair deletes only records that clients had deleted. It sets bad bytes aside, under a name that says so. All repairs
run in order after everything was inspected. If a crash interrupts them, the next start finds and repairs the rest.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from aioproducer.broker.storage.files import Files
from aioproducer.errors import DataDirectoryException
from aioproducer.protocol.primitives import Buffer

TORN = ".torn"
"""Suffix of files with an interrupted write, and everything after it."""

DAMAGED = ".damaged"
"""Suffix of files with unreadable bytes that no crash explains."""

_RECOVERED = ".recovered"
_PARTIAL = ".partial"
"""Suffix of a copy that is being written."""

_CHUNK = 1024 * 1024

_SHOWN = 20
"""How many places an error names; it counts the others."""


def damaged(directory: object, damage: Sequence[str]) -> DataDirectoryException:
    """The error for damage that no crash explains: it names the damaged places, and says what to do."""
    shown = list(damage[:_SHOWN])
    if len(damage) > _SHOWN:
        shown.append(f"and {len(damage) - _SHOWN} more")
    return DataDirectoryException(
        f"the data directory {directory} is damaged: {'; '.join(shown)}. Nothing was changed. Put the files back from "
        "a copy; or start with --recover (EmbeddedCluster(recover=True)): it keeps everything that can be read, under "
        "the same offsets, and sets aside what cannot"
    )


class Repair(Protocol):
    @property
    def path(self) -> str:
        """The file or directory that is changed or removed."""

    def run(self, files: Files) -> None:
        """Raises OSError."""


class Remove(NamedTuple):
    """Removes a file or directory whose records were all deleted by clients."""

    path: str

    def run(self, files: Files) -> None:
        files.remove(self.path)


class SetAside(NamedTuple):
    """Renames a whole file."""

    path: str
    suffix: str

    def run(self, files: Files) -> None:
        files.rename(self.path, _free(files, self.path + self.suffix))


class Cut(NamedTuple):
    """Cuts a file off at ``position``, and keeps the rest in another file."""

    path: str
    position: int

    def run(self, files: Files) -> None:
        size = files.size(self.path)
        if not self.position:
            (SetAside(self.path, TORN) if _has_anything(files, self.path, 0, size) else Remove(self.path)).run(files)
            return
        _keep(files, self.path, self.position, size, TORN)
        files.truncate(self.path, self.position)
        # Without this sync a crash could bring the rest back after the next batch that is written here.
        files.sync(self.path)


class Rewrite(NamedTuple):
    """Rewrites a file from parts: stretches of its own, as position and end, and new batches. The other stretches are
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
    """Gives a small file its right content."""

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
    """Copies the end of a file that the next commit rewrites."""

    path: str
    position: int
    suffix: str

    def run(self, files: Files) -> None:
        _keep(files, self.path, self.position, files.size(self.path), self.suffix)


def _has_anything(files: Files, path: str, position: int, end: int) -> bool:
    return any(chunk.strip(b"\0") for chunk in _chunks(files, path, position, end))


def _keep(files: Files, path: str, position: int, end: int, suffix: str) -> None:
    """Copies a part of a file, unless it has only zeros, which a crash leaves where nothing was written.

    A copy that an interrupted start has made of the same bytes is enough. Returns when the copy is on disk under its
    name, so the caller may change the file.
    """
    if not _has_anything(files, path, position, end):
        return
    directory, _, name = f"{path}.{position}{suffix}".rpartition("/")
    numbered = re.compile(re.escape(name) + r"(\.\d+)?")
    copies = [one for one in files.names(directory) if numbered.fullmatch(one)]
    if not any(_is_copy(files, _join(directory, one), path, position, end) for one in copies):
        partial = path + _PARTIAL
        try:
            files.remove(partial)
            for chunk in _chunks(files, path, position, end):
                files.append(partial, [chunk])
            files.sync(partial)
            files.rename(partial, _free(files, _join(directory, name)))
        except OSError:
            with suppress(OSError):  # the first error is the one to report
                files.remove(partial)
            raise
    files.sync_directory(directory)


def _is_copy(files: Files, copy: str, path: str, position: int, end: int) -> bool:
    return files.size(copy) == end - position and all(
        one == other
        for one, other in zip(_chunks(files, copy, 0, end - position), _chunks(files, path, position, end), strict=True)
    )


def _chunks(files: Files, path: str, position: int, end: int) -> Iterator[bytes]:
    while position < end:
        yield files.read(path, position, min(_CHUNK, end - position))
        position += _CHUNK


def _free(files: Files, path: str) -> str:
    """This path, or if it exists, the first free one with a number appended."""
    directory, _, name = path.rpartition("/")
    used = set(files.names(directory))
    numbered = (f"{name}.{number}" for number in itertools.count(1))
    free = next(one for one in itertools.chain([name], numbered) if one not in used)
    return _join(directory, free)


def _join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name
