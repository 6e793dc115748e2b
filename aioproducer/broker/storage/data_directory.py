"""The data directory of a cluster: its journal, and a directory for each partition that holds records."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from uuid import UUID

from aioproducer.broker.log_checkpoint import LogCheckpoint
from aioproducer.broker.producer_state import ProducerStateManager
from aioproducer.broker.storage.clean_shutdown import take_clean_shutdown
from aioproducer.broker.storage.commit import PARTITION_METADATA, Commit, Unsynced
from aioproducer.broker.storage.files import LOCK_FILE, Files
from aioproducer.broker.storage.journal import JOURNAL, Key, MetadataJournal
from aioproducer.broker.storage.stored_batches import StoredBatches
from aioproducer.broker.topic_config import TopicConfig
from aioproducer.errors import DataDirectoryException, KafkaStorageException

log = logging.getLogger(__name__)

FORMAT = 1
_DELETED = "-delete"
_STRAY = "-stray"


class DataDirectory:
    """What is on disk, and what will be: changes are collected until :meth:`begin` makes a :class:`Commit` of them.

    After the first error of the file system nothing can be appended (:meth:`check`), because nobody knows which part of
    the commit is on disk. After ``fsync`` has failed once, a second that succeeds proves nothing.

    ``on_change`` is called when there is something to commit.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.journal = MetadataJournal()
        self.failure: OSError | None = None
        self.checkpoints: dict[Key, LogCheckpoint] = {}
        """The state of logs that were closed properly, by the keys of their partitions."""
        self.on_change: Callable[[], object] = lambda: None
        self.changes = 0
        """How many there have been."""
        self._changed: dict[StoredBatches, None] = {}
        self._known: set[str] = set()
        self._metadata: dict[str, str] = {}
        self._renames: list[tuple[str, str]] = []
        self._unsynced = Unsynced()

    def open(self, nodes: int) -> None:
        """Takes the directory for this process and reads its journal.

        Raises :class:`DataDirectoryException` if another process has it, or it is of another kind of cluster.
        """
        self.files.lock()
        try:
            self.journal.load(self.files)
            cluster = self.journal.get("cluster")
            if cluster is None:
                strange = [name for name in self.files.names("") if name not in (LOCK_FILE, "lost+found")]
                if strange:
                    raise DataDirectoryException(
                        f"{self.files} is no data directory of an embedded broker: it has {strange[0]!r} and no "
                        f"{JOURNAL} that can be read; choose an empty directory"
                    )
                return
            if cluster["format"] != FORMAT:
                raise DataDirectoryException(
                    f"the data directory {self.files} has format {cluster['format']}, this version reads {FORMAT}"
                )
            if cluster["nodes"] != nodes:
                raise DataDirectoryException(
                    f"the data directory {self.files} is of a cluster of {cluster['nodes']} nodes, not {nodes}: "
                    "start it with as many, or choose another directory"
                )
            self.checkpoints = take_clean_shutdown(self.files)
        except BaseException:
            self.files.unlock()
            raise

    def close(self) -> None:
        """Lets go of the directory; what was not committed is lost."""
        self.files.unlock()

    # partitions

    def batches(self, topic: str, topic_id: UUID, index: int, config: TopicConfig) -> StoredBatches:
        """Where the log of a partition keeps its batches. Nothing is on disk before the first is appended."""
        return StoredBatches(self.files, f"{topic}-{index}", (topic_id.hex, index), self, config)

    def recover_directories(self, topics: dict[str, UUID]) -> None:
        """Removes what is left of deleted topics, and puts aside what belongs to no topic; ``topics`` has all."""
        deleted = {str(key[1]) for key in self.journal.of_kind("deleted")}
        for name in self.files.names(""):
            topic, _, index = name.rpartition("-")
            if name.endswith(_DELETED):
                self.files.remove(name)
            elif index.isdecimal():
                found = self.files.read(f"{name}/{PARTITION_METADATA}", 0, 1000) if self._has_metadata(name) else b""
                if topic in topics and found == _partition_metadata(topics[topic]).encode():
                    self._known.add(name)
                elif any(found == _partition_metadata(UUID(hex=one)).encode() for one in deleted):
                    self.files.remove(name)
                else:
                    self._put_aside(name)
        self.files.sync_directory("")

    def _has_metadata(self, directory: str) -> bool:
        return self.files.size(f"{directory}/{PARTITION_METADATA}") > 0

    def _put_aside(self, name: str) -> None:
        number = 0
        while self.files.names(aside := f"{name}.{number}{_STRAY}"):
            number += 1
        log.warning("%s belongs to no topic of this cluster: it is %s from now on", name, aside)
        self.files.rename(name, aside)

    def delete_topic(self, topic: str, topic_id: UUID, partitions: int) -> None:
        """The directories of its partitions are removed with the next commit."""
        self.journal.put_passing(("deleted", topic_id.hex), True)
        changed = {batches.directory: batches for batches in self._changed}
        for index in range(partitions):
            name = f"{topic}-{index}"
            if name in changed:
                del self._changed[changed[name]]
            if self._metadata.pop(name, None) is None and name in self._known:
                self._renames.append((name, f"{topic_id.hex}-{index}{_DELETED}"))
            self._known.discard(name)
        self.changed()

    # what logs and the cluster say

    def check(self) -> None:
        if self.failure is not None:
            raise KafkaStorageException(f"{self.files} has failed: {self.failure}")

    def log_changed(self, batches: StoredBatches) -> None:
        if batches not in self._changed:
            self._changed[batches] = None
            if batches.directory not in self._known:
                self._known.add(batches.directory)
                self._metadata[batches.directory] = _partition_metadata(UUID(hex=batches.key[0]))
        self.changed()

    def log_start_moved(
        self, batches: StoredBatches, log_start_offset: int, producer_state: ProducerStateManager
    ) -> None:
        self.journal.put(("log_start", *batches.key), log_start_offset)
        self.journal.put(("producers", *batches.key), producer_state.snapshot())
        self.changed()

    def changed(self) -> None:
        """There is something to commit: in the journal, or elsewhere."""
        self.changes += 1
        self.on_change()

    # committing

    def begin(self, *, sync: bool) -> Commit:
        """What has changed since the last one, which has ended: :meth:`end` follows before the next."""
        journal, passing = self.journal.take()
        renames, self._renames = self._renames, []
        directories, self._metadata = self._metadata, {}
        changed, self._changed = self._changed, {}
        logs, removals = [], []
        for batches in changed:
            writes, gone = batches.take()
            logs.append((batches, writes))
            removals += gone
        return Commit(
            self.files, self._unsynced, sync, self.changes, journal, passing, renames, directories, logs, removals
        )

    def end(self, commit: Commit, error: OSError | None = None) -> None:
        """It has run, or failed."""
        if error is not None:
            if self.failure is None:
                log.error(
                    "%s has failed, nothing is acknowledged any more until it is opened anew: %s", self.files, error
                )
                self.failure = error
            return
        self.journal.written(commit.journal, commit.journal_size, commit.passing)
        for batches, writes in commit.logs:
            batches.written(writes)

    @property
    def has_unsynced(self) -> bool:
        return bool(self._unsynced.files or self._unsynced.directories)


def _partition_metadata(topic_id: UUID) -> str:
    """What Kafka writes into the file of this name."""
    text = base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
    return f"version: 0\ntopic_id: {text}\n"
