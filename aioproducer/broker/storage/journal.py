"""The metadata of a cluster on disk: entries by key, of which the last one counts.

A commit appends one frame with the entries that it changed, so all of its changes are there after a crash, or none. A
value of null takes an entry back. When the file has grown too large, :class:`JournalCopy` takes its place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from aioproducer.broker.storage.files import Files
from aioproducer.broker.storage.frames import Key, Value, frame, read_frames
from aioproducer.broker.storage.journal_copy import JOURNAL, PIECE, JournalCopy, remove_copy

log = logging.getLogger(__name__)

GENERATION = "journal"
"""The key of the first entry in a file: how often it was written anew."""

_SMALL = 1024 * 1024
"""A file of fewer bytes is never written anew."""


class JournalWrite(NamedTuple):
    """What one commit writes: its changes or, if there is a copy that has them, what is left of that."""

    changes: Mapping[Key, Value]
    copy: JournalCopy | None

    def run(self, files: Files, *, sync: bool) -> int:
        """Returns how many bytes the file has then. Raises OSError."""
        if self.copy is not None:
            self.copy.replace(files)
        else:
            files.append(JOURNAL, [frame(self.changes)])
            if sync:
                files.sync(JOURNAL)
        return files.size(JOURNAL)


class Damage(NamedTuple):
    """Bytes of the file that are no frames, or are not there."""

    start: int
    end: int
    is_torn: bool = False
    """A crash may be the reason."""


class MetadataJournal:
    """The entries of a cluster. What is put is in the file after the next commit."""

    piece = PIECE
    """Bytes of a copy that are written at once."""

    def __init__(self) -> None:
        self._entries: dict[Key, Value] = {}
        self._changes: dict[Key, Value] = {}
        self._passing: list[Key] = []
        self._size = 0
        self._limit = 0
        self._generation = 0
        self.copy: JournalCopy | None = None
        """The next file, while it is written: commits continue meanwhile, and the one that finds it ready ends it."""

    def follow(self, generation: int) -> None:
        """The next file is a newer one than this, though it may be unknown which one is here."""
        self._generation = max(self._generation, generation)

    @property
    def point(self) -> Key:
        """The key of how much of the file is synced: another one for each that was written anew."""
        return GENERATION, self._generation

    def load(self, files: Files, synced: Callable[[Key], int]) -> Iterator[Damage]:
        """Reads the file; yields what is wrong with it, and reads the rest if it is asked to continue.

        ``synced`` says how many bytes were certainly on disk. A crash may have torn what lies behind them: that is
        ignored, and disappears with the next commit, which writes the file anew.
        """
        remove_copy(files)
        self._size = files.size(JOURNAL)
        end = 0
        for found in read_frames(files.read(JOURNAL, 0, self._size) if self._size else b""):
            # The first one is written as part of a whole file, which replaces another when it is synced.
            if found.entries is None and found.start and found.start >= synced(self.point):
                log.warning("%s is cut off at byte %d, and %d bytes are kept aside", JOURNAL, end, self._size - end)
                yield Damage(found.start, found.end, is_torn=True)
                break
            if found.entries is None:
                yield Damage(found.start, found.end)
            for key, value in found.entries or ():
                if key == (GENERATION,):
                    self._generation = value
                else:
                    self._set(key, value)
            end = found.end
        else:
            if end < synced(self.point):
                yield Damage(end, synced(self.point))
        self._passing = list(self.of_kind("markers")) + list(self.of_kind("deleted"))

    def get(self, *key: str | int) -> Value:
        return self._entries.get(key)

    def of_kind(self, kind: str) -> dict[Key, Value]:
        """The entries whose keys begin with ``kind``, in the order in which they came."""
        return {key: value for key, value in self._entries.items() if key[0] == kind}

    def put(self, key: Key, value: Value) -> None:
        """``value`` is not changed any more by anybody."""
        self._set(key, value)
        self._changes.pop(key, None)
        self._changes[key] = value

    def put_passing(self, key: Key, value: Value) -> None:
        """An entry that is needed only if a crash comes before the commit has done everything."""
        self.put(key, value)
        self._passing.append(key)

    def _set(self, key: Key, value: Value) -> None:
        self._entries.pop(key, None)
        if value is not None:
            self._entries[key] = value

    # committing

    def take(self) -> tuple[JournalWrite | None, list[Key]]:
        """What the next commit writes, and the keys of passing entries that are done with after it."""
        passing, self._passing = self._passing, []
        changes, self._changes = self._changes, {}
        if self.copy is not None:
            self.copy.follow(changes)
        elif not self._limit or (changes and self._size >= self._limit):
            first: dict[Key, Value] = {(GENERATION,): self._generation + 1}
            self.copy = JournalCopy({**first, **self._entries}, self.piece)
        # The first file of a start replaces what it has read, whose end may be bad, before the broker serves anything.
        if self.copy is not None and (self.copy.is_ready or not self._limit):
            self._generation += 1
            return JournalWrite(changes, self.copy), passing
        return (JournalWrite(changes, None) if changes else None), passing

    def written(self, write: JournalWrite | None, size: int, passed: list[Key]) -> None:
        """What :meth:`take` gave is in the file, which has ``size`` bytes now."""
        if write is not None:
            if write.copy is not None:
                self.copy = None
                self._limit = self.limit(size)
            elif self.copy is not None:
                self.copy.fall_behind(size - self._size)
            self._size = size
        for key in passed:
            if key not in self._changes:
                self._entries.pop(key, None)

    def limit(self, size: int) -> int:
        """The bytes at which a new file of this size is copied."""
        return max(_SMALL, 4 * size)
