"""One group commit: everything that changed since the last one, written and synced together."""

from __future__ import annotations

from dataclasses import dataclass, field

from aioproducer.broker.storage.files import Files
from aioproducer.broker.storage.frames import Key
from aioproducer.broker.storage.journal import JournalWrite
from aioproducer.broker.storage.journal_copy import JOURNAL
from aioproducer.broker.storage.recovery_points import RecoveryPoints
from aioproducer.broker.storage.stored_batches import SegmentWrite, StoredBatches
from aioproducer.records.record_batch import RecordBatch

PARTITION_METADATA = "partition.metadata"


@dataclass(slots=True)
class Unsynced:
    """Files that were written and not synced yet, and directories in which names changed."""

    files: dict[str, None] = field(default_factory=dict)
    directories: dict[str, None] = field(default_factory=dict)
    points: dict[Key, int] = field(default_factory=dict)
    """How far the logs and the journal are written."""

    def sync(self, files: Files) -> None:
        for path in self.files:
            files.sync(path)
        # The data directory comes first: it holds the others.
        for path in sorted(self.directories):
            files.sync_directory(path)
        self.files.clear()
        self.directories.clear()

    def forget(self, directory: str) -> None:
        """It is gone, with all it held."""
        self.directories.pop(directory, None)
        for path in [path for path in self.files if path.startswith(directory + "/")]:
            del self.files[path]


@dataclass(slots=True)
class Commit:
    """Runs in its own thread, one at a time.

    The journal comes first, then the logs: a batch is never on disk without the topic, the producer id or the
    transaction that it belongs to, and a marker never without its decision. Files are removed last.
    """

    files: Files
    unsynced: Unsynced
    points: RecoveryPoints
    sync: bool
    changes: int
    """How many changes there were when it was made."""
    journal: JournalWrite | None
    journal_point: Key
    passing: list[Key]
    renames: list[tuple[str, str]]
    """Directories of deleted topics, and their names until they are removed."""
    directories: dict[str, str]
    """New ones of partitions, and what their ``partition.metadata`` says."""
    logs: list[tuple[StoredBatches, list[SegmentWrite]]]
    removals: list[str]
    journal_size: int = 0

    def run(self) -> None:
        """Raises OSError; it is then unknown what is on disk."""
        files, unsynced = self.files, self.unsynced
        if self.journal is not None:
            self.journal_size = self.journal.run(files, sync=self.sync)
            unsynced.points[self.journal_point] = self.journal_size
            if not self.sync and self.journal.copy is None:
                unsynced.files[JOURNAL] = None
        if (self.renames or self.removals) and JOURNAL in unsynced.files:
            # It says why they are no longer there.
            files.sync(JOURNAL)
        for old, new in self.renames:
            files.rename(old, new)
            unsynced.forget(old)
        if self.renames:
            # Else they could come back when nothing says any more that their topic was deleted.
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
