"""The metadata of a cluster on disk: entries by key, of which the last one counts.

The file is a row of frames: the length of what follows the checksum, its CRC-32C (four bytes each, big-endian), and the
entries that one commit changed, as JSON: ``[[key, value], …]``. A value of null takes an entry back. A commit is one
frame, so all of its changes are there after a crash, or none. When the file has grown too large it is written anew, a
frame for each entry, and put in the old one's place by renaming.
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from aioproducer.broker.storage.files import Files
from aioproducer.records.crc32c import crc32c

log = logging.getLogger(__name__)

JOURNAL = "metadata.journal"
_NEW = "metadata.journal.new"
_FRAME = struct.Struct(">II")
_BEGINS = b"[["
"""The first bytes of every payload."""

GENERATION = "journal"
"""The key of the first entry in a file: how often it was written anew."""

_SMALL = 1024 * 1024
"""A file of fewer bytes is never written anew."""

Key = tuple[str | int, ...]
Value = Any
"""Anything that JSON has; None stands for no entry."""


class JournalWrite(NamedTuple):
    """What one commit writes: its changes or, where the file is to be written anew, all entries."""

    changes: Mapping[Key, Value]
    everything: Mapping[Key, Value] | None

    def run(self, files: Files, *, sync: bool) -> int:
        """Returns how many bytes the file has then. Raises OSError."""
        if self.everything is None:
            files.append(JOURNAL, [frame(self.changes)])
            if sync:
                files.sync(JOURNAL)
            return files.size(JOURNAL)
        files.remove(_NEW)
        # A frame each: damage to one costs the others nothing.
        files.append(_NEW, [frame({key: value}) for key, value in self.everything.items()])
        # Whatever the policy is: a new name for what is not there yet would lose the old file as well.
        files.sync(_NEW)
        files.rename(_NEW, JOURNAL)
        files.sync_directory("")
        return files.size(JOURNAL)


def frame(entries: Mapping[Key, Value]) -> bytes:
    """The entries as they lie in the file."""
    payload = json.dumps([[key, value] for key, value in entries.items()], separators=(",", ":")).encode()
    return _FRAME.pack(len(payload), crc32c(payload)) + payload


class Frame(NamedTuple):
    """Part of a file: its place, and its entries; None for bytes that are no frame."""

    start: int
    end: int
    entries: list[tuple[Key, Value]] | None


def read_frames(data: bytes) -> Iterator[Frame]:
    """All of a file, in order. Behind bytes that are no frame comes the next good one."""
    start = 0
    while start < len(data):
        payload = _payload(data, start)
        if payload is None:
            end = _next_frame(data, start)
            yield Frame(start, end, None)
        else:
            end = start + _FRAME.size + len(payload)
            yield Frame(start, end, [(tuple(key), value) for key, value in json.loads(payload)])
        start = end


def _payload(data: bytes, start: int) -> bytes | None:
    """That of the frame that begins here; None if it is no good frame."""
    if start + _FRAME.size > len(data):
        return None
    length, crc = _FRAME.unpack_from(data, start)
    start += _FRAME.size
    # An empty one would be what a hole full of zeros looks like.
    if not 0 < length <= len(data) - start:
        return None
    payload = data[start : start + length]
    return payload if crc32c(payload) == crc else None


def _next_frame(data: bytes, bad: int) -> int:
    """Where the first good frame behind a bad one begins; where the data ends if there is none."""
    at = data.find(_BEGINS, bad + 1 + _FRAME.size)
    while at >= 0:
        if _payload(data, at - _FRAME.size) is not None:
            return at - _FRAME.size
        at = data.find(_BEGINS, at + 1)
    return len(data)


class Damage(NamedTuple):
    """Bytes of the file that are no frames, or are not there."""

    start: int
    end: int
    is_torn: bool = False
    """A crash may be the reason."""


class MetadataJournal:
    """The entries of a cluster. What is put is in the file after the next commit."""

    def __init__(self) -> None:
        self._entries: dict[Key, Value] = {}
        self._changes: dict[Key, Value] = {}
        self._passing: list[Key] = []
        self._size = 0
        self._limit = 0
        self._generation = 0

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
        files.remove(_NEW)
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
        if not self._changes:
            return None, passing
        changes, self._changes = self._changes, {}
        if self._size < self._limit:
            return JournalWrite(changes, None), passing
        self._generation += 1
        return JournalWrite(changes, {(GENERATION,): self._generation, **self._entries}), passing

    def written(self, write: JournalWrite | None, size: int, passed: list[Key]) -> None:
        """What :meth:`take` gave is in the file, which has ``size`` bytes now."""
        if write is not None:
            self._size = size
            if write.everything is not None:
                self._limit = max(_SMALL, 4 * size)
        for key in passed:
            if key not in self._changes:
                self._entries.pop(key, None)
