"""Rewrites the journal without its obsolete entries, while commits continue.

Its snapshot is written a piece at a time to a file beside the one in use, with a frame for each entry: damage to one
costs the others nothing. Commits append to the file in use, and their changes follow here. When few of them are left,
they are written with the next commit, and the file takes the place of the other one.
"""

from __future__ import annotations

from collections.abc import Mapping

from aioproducer.broker.storage.files import Files
from aioproducer.broker.storage.frames import Key, Value, frame

JOURNAL = "metadata.journal"
_NEW = "metadata.journal.new"

PIECE = 1024 * 1024
"""Bytes that are written and synced at once. A commit waits for one piece at most."""


def remove_copy(files: Files) -> None:
    """What a crash has left of one. Raises OSError."""
    files.remove(_NEW)


class JournalCopy:
    """:meth:`advance` and :meth:`replace` run in the thread of commits, the others in the loop: never at once."""

    def __init__(self, entries: dict[Key, Value], piece: int = PIECE) -> None:
        """``entries`` is a snapshot that the copy owns."""
        self._piece = piece
        self._left = iter(entries.items())
        self._changes: dict[Key, Value] = {}
        self._behind = 0
        self._behind_since = 0
        self._begun = False
        self.is_ready = False
        """Whether what is left is no more than a piece."""

    def follow(self, changes: Mapping[Key, Value]) -> None:
        """The commit that is about to run has these changes, too."""
        for key, value in changes.items():
            self._changes.pop(key, None)
            self._changes[key] = value

    def fall_behind(self, size: int) -> None:
        """Counts bytes that were appended to the current file."""
        self._behind += size
        self._behind_since += size

    def advance(self, files: Files) -> None:
        """Writes and syncs a piece: twice what commits have added meanwhile at least, so there is an end. Raises
        OSError."""
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
        """Writes what is left, and takes the place of the file in use. Raises OSError."""
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
        # Under every flush policy: renaming a file that is not on disk yet would lose the old one too.
        files.sync(_NEW)
