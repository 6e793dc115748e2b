"""The data directory of a cluster: its journal, and a directory for each partition that holds records."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.log.log_checkpoint import LogCheckpoint
from aioproducer.broker.log.producer_state import ProducerStateManager
from aioproducer.broker.storage.clean_shutdown import read_clean_shutdown, remove_clean_shutdown
from aioproducer.broker.storage.commit import PARTITION_METADATA, Commit, CommitPace, Unsynced
from aioproducer.broker.storage.files import LOCK_FILE, Files
from aioproducer.broker.storage.frames import Key, Value
from aioproducer.broker.storage.journal import GENERATION, JOURNAL, MetadataJournal
from aioproducer.broker.storage.recovery_points import RECOVERY_POINTS, RecoveryPoints
from aioproducer.broker.storage.repair import DAMAGED, TORN, Keep, Remove, Repair, Restore, damaged
from aioproducer.broker.storage.segments.stored_batches import Recovered, StoredBatches
from aioproducer.errors import DataDirectoryException, KafkaStorageException

log = logging.getLogger(__name__)

FORMAT = 1
_DELETED = "-delete"
_STRAY = "-stray"


class DataDirectory:
    """Collects changes until :meth:`begin` makes a :class:`Commit` of them.

    A start first inspects everything (:meth:`open`, :meth:`inspect_directories`, and the logs), and only then changes
    files (:meth:`settle`). With ``recover`` it continues with the readable rest of a damaged directory.

    The first error of the file system ends all appending (:meth:`check`), because it is unknown which part of the
    commit is on disk. After one failed ``fsync`` a later success proves nothing.

    ``on_change`` is called when there is something to commit, ``on_failure`` after the first error.
    """

    logs_at_once = CommitPace.MOST
    """How many logs one commit writes to: preparing and ending it takes the event loop time for each. Others wait for
    the next one."""

    def __init__(
        self,
        files: Files,
        *,
        recover: bool = False,
        on_change: Callable[[], object] = lambda: None,
        on_failure: Callable[[], object] = lambda: None,
    ) -> None:
        self.files = files
        self.recover = recover
        self.journal = MetadataJournal()
        self.failure: OSError | None = None
        self.checkpoints: dict[Key, LogCheckpoint] = {}
        """The state of logs that were closed properly, by the keys of their partitions."""
        self._on_change = on_change
        self._on_failure = on_failure
        self.changes = 0
        """The number of changes so far."""
        self._changed: dict[StoredBatches, int] = {}
        """The logs that the next commits write to, in order, and the number of the first change of each."""
        self._pace = CommitPace()
        self._waiting: list[Callable[[], object]] = []
        """Called back once there is room."""
        self._producers: dict[Key, ProducerStateManager] = {}
        self._known: set[str] = set()
        self._metadata: dict[str, str] = {}
        self._renames: list[tuple[str, str]] = []
        self._unsynced = Unsynced()
        self._points = RecoveryPoints()
        self._damage: list[str] = []
        self._repairs: list[Repair] = []

    def open(self, nodes: int) -> None:
        """Locks the directory for this process and reads its journal.

        Raises :class:`DataDirectoryException` if another process has locked it, if it belongs to another kind of
        cluster, or if the journal is damaged.
        """
        self.files.lock()
        try:
            self._points.load(self.files)
            self._load_journal()
            cluster = self.journal.get("cluster")
            if cluster is None:
                strange = [name for name in self.files.names("") if name not in (LOCK_FILE, "lost+found")]
                if strange and not self._damage:
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
            if not self.recover:
                self.checkpoints = read_clean_shutdown(self.files)
        except BaseException:
            self.files.unlock()
            raise

    def _load_journal(self) -> None:
        if not self.files.size(JOURNAL) and RECOVERY_POINTS in self.files.names(""):
            self._damage.append(f"{JOURNAL} is missing")
        for found in self.journal.load(self.files, self._points.of):
            if found.is_torn:
                self._repairs.append(Keep(JOURNAL, found.start, TORN))
            else:
                self._damage.append(f"{JOURNAL}: bytes {found.start} to {found.end - 1} cannot be read")
        if not self._damage and self.journal.get("cluster") is None and RECOVERY_POINTS in self.files.names(""):
            self._damage.append(f"the beginning of {JOURNAL} is missing")
        if self._damage:
            if not self.recover:
                raise damaged(self.files, self._damage)
            for line in self._damage:
                log.error("%s: its topics, configs, offsets, transactions and users are lost", line)
            self._repairs.append(Keep(JOURNAL, 0, DAMAGED))
        self.journal.follow(self._points.last_generation(GENERATION))

    def settle(self) -> None:
        """Repairs what a crash left, after everything was inspected. If something is damaged it changes nothing and
        raises :class:`DataDirectoryException`."""
        if self._damage and not self.recover:
            raise damaged(self.files, self._damage)
        remove_clean_shutdown(self.files)
        for repair in self._repairs:
            repair.run(self.files)
        for directory in sorted({directory_of(repair.path) for repair in self._repairs} & {"", *self.files.names("")}):
            self.files.sync_directory(directory)
        self._repairs.clear()

    def close(self) -> None:
        """Unlocks the directory; uncommitted changes are lost."""
        self.files.unlock()

    # partitions

    def batches(self, topic: str, topic_id: UUID, index: int, config: TopicConfig) -> StoredBatches:
        """The batches of a partition's log. The first append creates its directory."""
        return StoredBatches(self.files, f"{topic}-{index}", (topic_id.hex, index), self, config)

    def inspect_directories(self, topics: dict[str, UUID]) -> None:
        """Plans to remove the directories of deleted topics, and to set aside those that belong to no topic.
        ``topics`` has the ids of all topics by name."""
        deleted = self._deleted
        known = {GENERATION} | {topic_id.hex for topic_id in (*topics.values(), *deleted)}
        names = self.files.names("")
        for name in names:
            if name.endswith(_DELETED):
                self._repairs.append(Remove(name))
            elif (one := _partition_of(name)) is not None:
                self._inspect(name, *one, topics, deleted)
        self._points.forget(lambda key: key[0] in known)
        if self.recover:
            for topic, topic_id in topics.items():
                for index in self._points.partitions(topic_id.hex):
                    name = f"{topic}-{index}"
                    if name not in names:  # it is missing, and created anew
                        self._known.add(name)
                        self._metadata[name] = _partition_metadata(topic_id)

    @property
    def _deleted(self) -> set[UUID]:
        return {UUID(hex=str(key[1])) for key in self.journal.of_kind("deleted")}

    def lost_topics(self, topics: dict[str, UUID]) -> dict[UUID, tuple[str, int]]:
        """Topics that have records on disk but are missing in the journal: the name, and the least number of partitions
        that they had. ``topics`` has the topics in the journal."""
        found: dict[UUID, tuple[str, int]] = {}
        for name in self.files.names(""):
            one = _partition_of(name)
            topic_id = None if one is None else self._topic_id_of(name)
            if one is None or topic_id is None or topic_id in topics.values() or topic_id in self._deleted:
                continue
            topic, index = one
            if topic not in topics and self._points.of((topic_id.hex, index)):
                found[topic_id] = topic, max(index + 1, found.get(topic_id, (topic, 0))[1])
        for topic, partitions in found.values():
            line = f"{JOURNAL}: the topic {topic!r} is missing, and there are records of {partitions} partitions"
            self._damage.append(line)
            if self.recover:
                log.error("%s: the topic is restored with the default configs", line)
        return found

    def _topic_id_of(self, directory: str) -> UUID | None:
        path = f"{directory}/{PARTITION_METADATA}"
        return _topic_id(self.files.read(path, 0, 1000)) if self.files.size(path) else None

    def _is_nearly(self, path: str, right: bytes) -> bool:
        """Whether at most one byte of a small file is wrong."""
        if self.files.size(path) != len(right):
            return False
        found = self.files.read(path, 0, len(right))
        return sum(one != other for one, other in zip(found, right, strict=True)) <= 1

    def _inspect(self, name: str, topic: str, index: int, topics: dict[str, UUID], deleted: set[UUID]) -> None:
        topic_id = self._topic_id_of(name)
        if topic in topics and topic_id == topics[topic]:
            self._known.add(name)
        elif topic_id in deleted:
            self._repairs.append(Remove(name))
        elif topic in topics and self._points.of((topics[topic].hex, index)):
            # The recovery points show that this topic has records here. Older directories of its name were renamed
            # before the topic was created, so this one belongs to it.
            path = f"{name}/{PARTITION_METADATA}"
            right = _partition_metadata(topics[topic]).encode()
            if self._is_nearly(path, right):
                log.warning("%s was damaged and is restored from the journal", path)
            else:
                self._damage.append(f"{path} does not name the topic {topic!r}")
            self._known.add(name)
            self._repairs.append(Restore(path, right))
        else:
            self._repairs.append(PutAside(name))

    def delete_topic(self, topic: str, topic_id: UUID, partitions: int) -> None:
        """Removes the directories of its partitions with the next commit."""
        self.put_passing(("deleted", topic_id.hex), True)
        names = {f"{topic}-{index}" for index in range(partitions)}
        for batches in [batches for batches in self._changed if batches.directory in names]:
            del self._changed[batches]
        for key in [key for key in self._producers if key[0] == topic_id.hex]:
            del self._producers[key]
        known = names & self._known
        self._known -= known
        for name in sorted(known):
            if self._metadata.pop(name, None) is None:
                index = name.rpartition("-")[2]
                self._renames.append((name, f"{topic_id.hex}-{index}{_DELETED}"))
        self.changed()

    # what the logs and the cluster report

    def check(self) -> None:
        if self.failure is not None:
            raise KafkaStorageException(f"{self.files} has failed: {self.failure}")

    def names(self, directory: str) -> list[str]:
        return self.files.names(directory) if directory in self._known else []

    def recovery_point(self, key: Key) -> int:
        return self._points.of(key)

    def recovered(self, found: Recovered) -> None:
        self._damage += found.damage
        self._repairs += found.repairs
        self._unsynced.files.update(dict.fromkeys(found.unsynced))
        if found.unsynced:
            self._unsynced.points[found.key] = found.log_end_offset

    def log_removed(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._repairs.append(Remove(path))
            self._unsynced.files.pop(path, None)

    def log_changed(self, batches: StoredBatches) -> None:
        if batches not in self._changed:
            self._changed[batches] = self.changes + 1
            if batches.directory not in self._known:
                self._known.add(batches.directory)
                self._metadata[batches.directory] = _partition_metadata(UUID(hex=batches.key[0]))
        self.changed()

    def log_start_moved(self, batches: StoredBatches, log_start_offset: int) -> None:
        self.journal.put(("log_start", *batches.key), log_start_offset)
        self.changed()

    def keep_producers(self, key: Key, producer_state: ProducerStateManager) -> None:
        self._producers[key] = producer_state
        self.changed()

    def changed(self) -> None:
        """Counts a change, and has it committed."""
        self.changes += 1
        self._on_change()

    def put_passing(self, key: Key, value: Value) -> None:
        """Puts an entry into the journal that is needed until the changes so far are on disk. :meth:`changed` must
        follow."""
        self.journal.put_passing(key, value, self.changes + 1)

    # committing

    @property
    def room(self) -> int:
        """How many more logs may change before a commit takes too long. After a failure nothing waits any more."""
        return CommitPace.MOST if self.failure is not None else max(0, self._pace.logs - len(self._changed))

    def when_room(self, callback: Callable[[], object]) -> None:
        """Calls back once there is room, maybe at once."""
        if self.room:
            callback()
        else:
            self._waiting.append(callback)

    def _call_waiting(self) -> None:
        if self.room:
            waiting, self._waiting = self._waiting, []
            for callback in waiting:
                callback()

    def begin(self, *, sync: bool) -> Commit:
        """Makes a commit of the changes since the last one. :meth:`end` must follow before the next :meth:`begin`.

        If very many logs have changed, some are left to the next commit. All entries of the journal are in this one.
        So after a crash a journal may be ahead of its logs, as it is after a crash between the two.
        """
        for key, producer_state in self._producers.items():
            self.journal.put(("producers", *key), producer_state.snapshot())
        self._producers.clear()
        taken = list(islice(self._changed, self.logs_at_once))
        for batches in taken:
            del self._changed[batches]
        covered = next(iter(self._changed.values()), self.changes + 1) - 1
        journal, passing = self.journal.take(covered)
        renames, self._renames = self._renames, []
        directories, self._metadata = self._metadata, {}
        logs, removals = [], []
        for batches in taken:
            writes, gone = batches.take()
            logs.append((batches, writes))
            removals += gone
        self._call_waiting()
        return Commit(
            self.files,
            self._unsynced,
            self._points,
            sync,
            covered,
            journal,
            self.journal.point,
            passing,
            renames,
            directories,
            logs,
            removals,
        )

    def end(self, commit: Commit, error: OSError | None = None) -> None:
        """The commit has run, or failed with ``error``."""
        if error is not None:
            self.fail(error)
            return
        self.journal.written(commit.journal, commit.journal_size, commit.passing)
        for batches, writes in commit.logs:
            batches.written(writes)
        self._pace.committed(len(commit.logs), commit.seconds)
        self._call_waiting()

    def fail(self, error: OSError) -> None:
        """The directory has failed: nothing can be written until it is opened anew."""
        if self.failure is None:
            log.error("%s has failed, and no change is acknowledged until it is opened anew: %s", self.files, error)
            self.failure = error
            self._on_failure()
            self._call_waiting()

    @property
    def has_unsynced(self) -> bool:
        return bool(self._unsynced.files or self._unsynced.directories)


class PutAside(NamedTuple):
    """Renames a directory that belongs to no topic."""

    path: str

    def run(self, files: Files) -> None:
        used, number = files.names(""), 0
        while (aside := f"{self.path}.{number}{_STRAY}") in used:
            number += 1
        log.warning("%s belongs to no topic of this cluster and is renamed to %s", self.path, aside)
        files.rename(self.path, aside)


def directory_of(path: str) -> str:
    """The directory of a file, below the data directory."""
    return path.rpartition("/")[0]


def _partition_of(directory: str) -> tuple[str, int] | None:
    """The topic and the index in the name of a directory; None if it is not that of a partition."""
    topic, _, index = directory.rpartition("-")
    return (topic, int(index)) if topic and index.isdecimal() else None


def _topic_id(metadata: bytes) -> UUID | None:
    """The topic id in a ``partition.metadata``; None if it cannot be read."""
    found = re.fullmatch(rb"version: 0\ntopic_id: ([A-Za-z0-9_-]{22})\n", metadata)
    return None if found is None else UUID(bytes=base64.urlsafe_b64decode(found[1] + b"=="))


def _partition_metadata(topic_id: UUID) -> str:
    """The contents of a ``partition.metadata``, as Kafka writes them."""
    text = base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
    return f"version: 0\ntopic_id: {text}\n"
