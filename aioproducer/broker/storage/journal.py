"""The metadata of a cluster on disk: entries by key. The last entry of a key counts; a value of null removes it.

A commit appends one frame with all of its changes, so a crash leaves either all of them or none. A file that has grown
too large is replaced by a :class:`JournalCopy`, which has no obsolete entries.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from aioproducer.broker.storage.files import Files, check_size
from aioproducer.broker.storage.frames import Key, Value, frame, read_frames

log = logging.getLogger(__name__)

JOURNAL = "metadata.journal"
_NEW = "metadata.journal.new"

OF_TOPICS = frozenset(("topic", "leader_epoch", "log_start", "producers"))
"""The kinds of entries that a topic has. The id of the topic follows in their keys."""

GENERATION = "journal"
"""The key of the first entry in a file, which counts how often the file was rewritten."""

PIECE = 1024 * 1024
"""Bytes of a copy that are written and synced at once. A commit waits for one piece at most."""

_SMALL = 1024 * 1024
"""Bytes below which a file is never rewritten."""


class JournalCopy:
    """A copy of the journal under way, while commits continue.

    It writes a snapshot of the entries a piece at a time to a second file, with a frame for each entry, so that damage
    to one frame loses no other entry. Commits continue to append to the file in use; the copy follows with their
    changes. Once few changes are left, the next commit writes them and renames the copy over the file in use.

    The thread of commits calls :meth:`advance` and :meth:`replace`, the event loop calls the other methods; they never
    run at the same time.
    """

    def __init__(self, entries: dict[Key, Value], piece: int = PIECE) -> None:
        """``entries`` is a snapshot that the copy owns."""
        self._piece = piece
        self._left = iter(entries.items())
        self._changes: dict[Key, Value] = {}
        self._behind = 0
        self._behind_since = 0
        self._begun = False
        self.is_ready = False
        """Whether no more than a piece is left to write."""

    def follow(self, changes: Mapping[Key, Value]) -> None:
        """Adds the changes of the commit that is about to run."""
        for key, value in changes.items():
            self._changes.pop(key, None)
            self._changes[key] = value

    def fall_behind(self, size: int) -> None:
        """Counts bytes that were appended to the current file."""
        self._behind += size
        self._behind_since += size

    def advance(self, files: Files) -> None:
        """Writes and syncs a piece. It is at least twice as large as what commits have added since the last piece, so
        the copy catches up. Raises OSError."""
        least = max(self._piece, 2 * self._behind_since)
        self._behind_since = 0
        size, frames = 0, []
        for key, value in self._left:
            frames.append(frame({key: value}))
            size += len(frames[-1])
            if size >= least:
                break
        else:
            self.is_ready = self._behind <= least
            if not self.is_ready:
                self._left, self._changes, self._behind = iter(self._changes.items()), {}, 0
        self._append(files, frames)

    def replace(self, files: Files) -> None:
        """Writes the rest, and replaces the file in use. Raises OSError."""
        while not self.is_ready:
            self.advance(files)
        if self._changes:
            self._append(files, [frame({key: value}) for key, value in self._changes.items()])
        files.rename(_NEW, JOURNAL)
        files.sync_directory("")

    def _append(self, files: Files, frames: list[bytes]) -> None:
        if not self._begun:
            self._begun = True
            files.remove(_NEW)
        files.append(_NEW, frames)
        # Under every flush policy: the rename discards the old file, so the new one must be on disk.
        files.sync(_NEW)


class JournalWrite(NamedTuple):
    """What one commit writes: its changes, to the file that has ``size`` bytes so far, or the rest of a copy that has
    them."""

    changes: Mapping[Key, Value]
    copy: JournalCopy | None
    size: int

    def run(self, files: Files, *, sync: bool) -> int:
        """Returns the new size of the file. Raises OSError."""
        if self.copy is not None:
            self.copy.replace(files)
        else:
            data = frame(self.changes)
            files.append(JOURNAL, [data])
            check_size(files, JOURNAL, self.size + len(data))
            if sync:
                files.sync(JOURNAL)
        return files.size(JOURNAL)


class Damage(NamedTuple):
    """Bytes of the file that are no frames, or are missing."""

    start: int
    end: int
    is_torn: bool = False
    """Whether a crash may have caused it."""


class MetadataJournal:
    """The entries of a cluster. The next commit writes what :meth:`put` has changed."""

    piece = PIECE
    """How many bytes of a copy are written at once."""

    def __init__(self) -> None:
        self._entries: dict[Key, Value] = {}
        self._of_topic: dict[str | int, dict[Key, None]] = {}
        """By the id of a topic, the keys of its entries."""
        self._changes: dict[Key, Value] = {}
        self._passing: deque[tuple[int, Key]] = deque()
        self._size = 0
        self._limit = 0
        self._generation = 0
        self.copy: JournalCopy | None = None
        """The next file while it is written. Commits continue meanwhile; the first one that finds it ready ends it."""

    def follow(self, generation: int) -> None:
        """Gives the next file a generation above this one, even if the generation of the current file is unknown."""
        self._generation = max(self._generation, generation)

    @property
    def point(self) -> Key:
        """The key of the file's recovery point; each rewritten file has its own."""
        return GENERATION, self._generation

    def load(self, files: Files, synced: Callable[[Key], int]) -> Iterator[Damage]:
        """Reads the file and yields the damage that it finds. A caller that continues gets the rest read.

        ``synced`` returns how many bytes were certainly on disk. A crash may have torn the bytes after them: these are
        ignored, and disappear with the next commit, which rewrites the file.
        """
        _remove_copy(files)
        self._size = files.size(JOURNAL)
        end = 0
        for found in read_frames(files.read(JOURNAL, 0, self._size) if self._size else b""):
            # A crash never tears the first frame: a new file replaces the old one only after it was synced.
            if found.entries is None and found.start and found.start >= synced(self.point):
                log.warning("%s is cut off at byte %d; a copy has the other %d bytes", JOURNAL, end, self._size - end)
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
        self._passing = deque((0, key) for kind in ("markers", "deleted") for key in self.of_kind(kind))

    def get(self, *key: str | int) -> Value:
        return self._entries.get(key)

    def of_kind(self, kind: str) -> dict[Key, Value]:
        """The entries whose keys begin with ``kind``, in the order of their last changes."""
        return {key: value for key, value in self._entries.items() if key[0] == kind}

    def of_topic(self, topic_id: str) -> list[Key]:
        """The keys of a topic's entries, of those of the kinds :data:`OF_TOPICS`."""
        return list(self._of_topic.get(topic_id, ()))

    def put(self, key: Key, value: Value) -> None:
        """Sets an entry. The caller must not change ``value`` afterwards."""
        self._set(key, value)
        self._changes.pop(key, None)
        self._changes[key] = value

    def put_passing(self, key: Key, value: Value, number: int) -> None:
        """Sets an entry that a start needs only if a crash comes before all changes up to this number are on disk."""
        self.put(key, value)
        self._passing.append((number, key))

    def _set(self, key: Key, value: Value) -> None:
        self._entries.pop(key, None)
        if value is not None:
            self._entries[key] = value
        if key[0] in OF_TOPICS:
            self._index(key, is_set=value is not None)

    def _index(self, key: Key, *, is_set: bool) -> None:
        keys = self._of_topic.setdefault(key[1], {})
        if is_set:
            keys[key] = None
        else:
            keys.pop(key, None)
            if not keys:
                del self._of_topic[key[1]]

    # committing

    def take(self, covered: int) -> tuple[JournalWrite | None, list[Key]]:
        """What the next commit writes, and the keys of the passing entries that end with it: after it, all changes up
        to the number ``covered`` are on disk."""
        passing = []
        while self._passing and self._passing[0][0] <= covered:
            passing.append(self._passing.popleft()[1])
        changes, self._changes = self._changes, {}
        if self.copy is not None:
            self.copy.follow(changes)
        elif not self._limit or (changes and self._size >= self._limit):
            first: dict[Key, Value] = {(GENERATION,): self._generation + 1}
            self.copy = JournalCopy({**first, **self._entries}, self.piece)
        # The first commit after a start replaces the file that was read, whose end may be bad. No node runs yet, so
        # this copy need not be written in pieces.
        if self.copy is not None and (self.copy.is_ready or not self._limit):
            self._generation += 1
            return JournalWrite(changes, self.copy, self._size), passing
        return (JournalWrite(changes, None, self._size) if changes else None), passing

    def written(self, write: JournalWrite | None, size: int, passed: list[Key]) -> None:
        """The result of :meth:`take` is in the file, which has ``size`` bytes now."""
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
        """The size at which a file is copied that had this size when it was new."""
        return max(_SMALL, 4 * size)


def _remove_copy(files: Files) -> None:
    """Removes the copy that a crash interrupted. Raises OSError."""
    files.remove(_NEW)
