"""One group commit: writes and syncs everything that changed since the last commit."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from aioproducer.broker.storage.files import Files, check_size
from aioproducer.broker.storage.frames import Key
from aioproducer.broker.storage.journal import JOURNAL, JournalWrite
from aioproducer.broker.storage.recovery_points import RecoveryPoints
from aioproducer.broker.storage.segments.stored_batches import SegmentWrite, StoredBatches
from aioproducer.records.record_batch import RecordBatch

PARTITION_METADATA = "partition.metadata"


class CommitPace:
    """The number of logs that a commit may write to, so that it ends soon on any disk and under any flush policy.

    Every answer waits for the current commit and the next one. A log costs a few milliseconds if it is new and synced,
    and hardly anything if it is neither.
    """

    TARGET = 0.01
    """Seconds that a commit should take at most."""
    LEAST, MOST = 4, 500

    def __init__(self) -> None:
        self.logs = min(64, self.MOST)

    def committed(self, logs: int, seconds: float) -> None:
        """A commit that wrote to so many logs took so long."""
        if seconds > self.TARGET:
            self.logs = max(self.LEAST, min(self.logs, logs) // 2)
        elif logs >= self.logs:
            self.logs = min(self.MOST, self.logs + self.logs // 4 + 1)


@dataclass(slots=True)
class Unsynced:
    """Files that are written but not synced, and directories whose names changed since their last sync."""

    files: dict[str, None] = field(default_factory=dict)
    directories: dict[str, None] = field(default_factory=dict)
    points: dict[Key, int] = field(default_factory=dict)
    """The recovery points that the next sync makes true."""

    def sync(self, files: Files) -> None:
        for path in self.files:
            files.sync(path)
        # The data directory comes first: it holds the others.
        for path in sorted(self.directories):
            files.sync_directory(path)
        self.files.clear()
        self.directories.clear()

    def forget(self, directory: str) -> None:
        """The directory and its files were removed."""
        self.directories.pop(directory, None)
        for path in [path for path in self.files if path.startswith(directory + "/")]:
            del self.files[path]


@dataclass(slots=True)
class Commit:
    """Writes in the committer's thread, one commit at a time.

    It writes the journal first and the logs after it, so a batch is never on disk without its topic, producer id or
    transaction, and a marker never without its decision. Files are removed last.
    """

    files: Files
    unsynced: Unsynced
    points: RecoveryPoints
    sync: bool
    changes: int
    """The changes up to this number are on disk after the commit. Some later ones may be there, too."""
    journal: JournalWrite | None
    journal_point: Key
    passing: list[Key]
    renames: list[tuple[str, str]]
    """Directories of deleted topics: their names, and the names that they have until they are removed."""
    directories: dict[str, str]
    """New directories of partitions, and the contents of their ``partition.metadata``."""
    logs: list[tuple[StoredBatches, list[SegmentWrite]]]
    removals: list[str]
    journal_size: int = 0
    seconds: float = 0.0
    """How long :meth:`run` took."""

    def run(self) -> None:
        """Writes and syncs. Raises OSError; which part of the commit is on disk is then unknown."""
        began = time.monotonic()
        self._run()
        self.seconds = time.monotonic() - began

    def _run(self) -> None:
        files, unsynced = self.files, self.unsynced
        if self.journal is not None:
            self.journal_size = self.journal.run(files, sync=self.sync)
            unsynced.points[self.journal_point] = self.journal_size
            if not self.sync and self.journal.copy is None:
                unsynced.files[JOURNAL] = None
        if (self.renames or self.removals) and JOURNAL in unsynced.files:
            # The journal records the deletion, so it must be on disk before the directories disappear.
            files.sync(JOURNAL)
        for old, new in self.renames:
            files.rename(old, new)
            unsynced.forget(old)
        if self.renames:
            # Without this sync a crash could bring them back after the journal has dropped the deletion.
            files.sync_directory("")
        for directory, metadata in self.directories.items():
            path = f"{directory}/{PARTITION_METADATA}"
            files.make_directory(directory)
            files.append(path, [metadata.encode()])
            unsynced.files[path] = None
            unsynced.directories[""] = unsynced.directories[directory] = None
        for batches, writes in self.logs:
            for write in writes:
                files.append(write.path, write.batches)
                check_size(files, write.path, write.position + sum(map(len, write.batches)))
                unsynced.files[write.path] = None
                unsynced.points[batches.key] = RecordBatch(write.batches[-1]).last_offset + 1
                if write.creates:
                    unsynced.directories[batches.directory] = None
        if self.sync:
            unsynced.sync(files)
            self.points.advance(files, unsynced.points)
            unsynced.points.clear()
        for path in [*self.removals, *(new for _, new in self.renames)]:
            files.remove(path)
            unsynced.files.pop(path, None)
