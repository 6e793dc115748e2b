"""The metadata of a cluster on disk: entries by key, of which the last one counts.

The file is a row of frames: the length of what follows the checksum, its CRC-32C (four bytes each, big-endian), and the
entries that one commit changed, as JSON: ``[[key, value], …]``. A value of null takes an entry back. A commit is one
frame, so all of its changes are there after a crash, or none. When the file has grown too large it is written anew and
put in the old one's place by renaming.
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from aioproducer.broker.storage.files import Files
from aioproducer.records.crc32c import crc32c

log = logging.getLogger(__name__)

JOURNAL = "metadata.journal"
_NEW = "metadata.journal.new"
_FRAME = struct.Struct(">II")
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
        files.append(_NEW, [frame(self.everything)])
        # Whatever the policy is: a new name for what is not there yet would lose the old file as well.
        files.sync(_NEW)
        files.rename(_NEW, JOURNAL)
        files.sync_directory("")
        return files.size(JOURNAL)


def frame(entries: Mapping[Key, Value]) -> bytes:
    """The entries as they lie in the file."""
    payload = json.dumps([[key, value] for key, value in entries.items()], separators=(",", ":")).encode()
    return _FRAME.pack(len(payload), crc32c(payload)) + payload


def read_frames(data: bytes) -> Iterator[tuple[int, list[tuple[Key, Value]]]]:
    """The entries of each good frame with the position where it ends; nothing after the first that is not good."""
    start = 0
    while start + _FRAME.size <= len(data):
        length, crc = _FRAME.unpack_from(data, start)
        start += _FRAME.size
        payload = data[start : start + length]
        # An empty one would be what a hole full of zeros looks like.
        if not length or len(payload) < length or crc32c(payload) != crc:
            return
        start += length
        yield start, [(tuple(key), value) for key, value in json.loads(payload)]


class MetadataJournal:
    """The entries of a cluster. What is put is in the file after the next commit."""

    def __init__(self) -> None:
        self._entries: dict[Key, Value] = {}
        self._changes: dict[Key, Value] = {}
        self._passing: list[Key] = []
        self._size = 0
        self._limit = 0

    def load(self, files: Files) -> None:
        """Reads the file. A torn end is ignored, and disappears with the next commit, which writes the file anew."""
        files.remove(_NEW)
        self._size = files.size(JOURNAL)
        good = 0
        for end, changes in read_frames(files.read(JOURNAL, 0, self._size) if self._size else b""):
            good = end
            for key, value in changes:
                self._set(key, value)
        if good < self._size:
            log.warning("%s is cut off at byte %d, %d bytes are lost", JOURNAL, good, self._size - good)
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
        return JournalWrite(changes, dict(self._entries) if self._size >= self._limit else None), passing

    def written(self, write: JournalWrite | None, size: int, passed: list[Key]) -> None:
        """What :meth:`take` gave is in the file, which has ``size`` bytes now."""
        if write is not None:
            self._size = size
            if write.everything is not None:
                self._limit = max(_SMALL, 4 * size)
        for key in passed:
            if key not in self._changes:
                self._entries.pop(key, None)
