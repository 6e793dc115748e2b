"""The batches of one partition in segment files, with their index in memory."""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, overload

from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.log.log_checkpoint import SegmentCheckpoint
from aioproducer.broker.log.producer_state import ProducerStateManager
from aioproducer.broker.storage.files import Files
from aioproducer.broker.storage.repair import Repair
from aioproducer.broker.storage.segments.log_recovery import LogRecovery
from aioproducer.broker.storage.segments.segment import Segment, base_offset_of, segment_path
from aioproducer.errors import CorruptRecordException, KafkaStorageException
from aioproducer.protocol.primitives import Buffer
from aioproducer.records.record_batch import RecordBatch

log = logging.getLogger(__name__)


class SegmentWrite(NamedTuple):
    """Batches to append to a segment, which has ``position`` bytes so far; with ``creates`` the file is new."""

    path: str
    position: int
    batches: list[bytearray]
    creates: bool


class Recovered(NamedTuple):
    """What a start has found in the files of a log. ``unsynced`` are the files that may be only in the system's
    cache."""

    key: tuple[str, int]
    log_end_offset: int
    damage: list[str]
    repairs: list[Repair]
    unsynced: list[str]


class LogKeeper(Protocol):
    """What a log needs of the data directory, which commits its changes."""

    def check(self) -> None:
        """Raises :class:`KafkaStorageException` if the data directory has failed."""

    def log_changed(self, batches: StoredBatches) -> None: ...

    def names(self, directory: str) -> list[str]:
        """The files of a log when it is loaded; none if the directory belongs to no topic, and will be set aside."""

    @property
    def recover(self) -> bool:
        """Whether to continue with the readable rest of a damaged log."""

    def recovery_point(self, key: tuple[str, int]) -> int:
        """The offset up to which the log was certainly on disk."""

    def recovered(self, found: Recovered) -> None: ...

    def log_removed(self, paths: Iterable[str]) -> None:
        """These files no longer belong to the log."""

    def log_start_moved(self, batches: StoredBatches, log_start_offset: int) -> None: ...

    def keep_producers(self, key: tuple[str, int], producer_state: ProducerStateManager) -> None:
        """Stores the state with the next commit: no start will read some of the batches that it comes from."""


class StoredBatches:
    """:class:`Batches` on disk.

    An appended batch stays in memory until a commit has written it (:meth:`take`, then :meth:`written`); after that it
    is read from its file. A file is removed with the last of its batches.
    """

    def __init__(
        self, files: Files, directory: str, key: tuple[str, int], keeper: LogKeeper, config: TopicConfig
    ) -> None:
        """``key`` is the topic id and the index of the partition."""
        self.directory = directory
        self.key = key
        self._files = files
        self._keeper = keeper
        self._segment_bytes = config.segment_bytes
        self._segments: list[Segment] = []
        # Batches have numbers that never change. Both arrays begin with the first batch of the first segment.
        self._positions = array("q")
        self._sizes = array("q")
        self._first = 0
        self._deleted = 0
        self._producer_state = ProducerStateManager()
        self._kept = 0
        self._created: set[str] = set()
        self._unwritten: list[bytearray] = []
        self._written = 0
        self._removals: list[str] = []
        self._logged: set[str] = set()

    def use(self, producer_state: ProducerStateManager) -> None:
        self._producer_state = producer_state

    def configure(self, config: TopicConfig) -> None:
        self._segment_bytes = config.segment_bytes

    # reading

    def __len__(self) -> int:
        return self._end - self._deleted

    def size(self, index: int) -> int:
        return self._sizes[self._deleted + index - self._first]

    @overload
    def __getitem__(self, index: int) -> Buffer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Buffer]: ...
    def __getitem__(self, index: int | slice) -> Buffer | Sequence[Buffer]:
        first, last, _ = (index if isinstance(index, slice) else slice(index, index + 1)).indices(len(self))
        found = self._read(self._deleted + first, self._deleted + last)
        return found if isinstance(index, slice) else found[0]

    def __iter__(self) -> Iterator[Buffer]:
        return (self[index] for index in range(len(self)))

    def _read(self, first: int, last: int) -> list[Buffer]:
        """The batches of these numbers, up to the first that is not as it was written. Adjacent batches of a file are
        read together. Raises :class:`CorruptRecordException` if the first batch is not as it was written."""
        found: list[Buffer] = []
        while first < min(last, self._written):
            at = self._segment_at(first)
            end = min(last, self._written, self._beyond(at))
            try:
                for batch in self._read_segment(self._segments[at], first, end):
                    found.append(batch)  # noqa: PERF402 - those before one that cannot be read are kept
            except CorruptRecordException:
                if found:  # the batches before it can be read
                    return found
                raise
            first = end
        return found + list(self._unwritten[first - self._written : last - self._written] if first < last else ())

    def _read_segment(self, segment: Segment, first: int, last: int) -> Iterator[Buffer]:
        sizes = self._sizes[first - self._first : last - self._first]
        position, size = self._positions[first - self._first], sum(sizes)
        try:
            data = memoryview(self._files.read(segment.path, position, size))
        except OSError as error:
            raise KafkaStorageException(f"{segment.path} cannot be read: {error}") from error
        if len(data) < size:
            raise KafkaStorageException(f"{segment.path} ends at byte {position + len(data)}, within its batches")
        start = 0
        for size in sizes:
            batch = data[start : start + size]
            self._verify(batch, segment.path, position + start)
            yield batch
            start += size

    def _verify(self, batch: memoryview, path: str, position: int) -> None:
        """Raises :class:`CorruptRecordException` if a batch is not as it was written."""
        try:
            RecordBatch(batch).verify()
        except CorruptRecordException as error:
            text = f"{path}, byte {position}: {error}"
            if text not in self._logged:
                self._logged.add(text)
                log.error("%s; a start with --recover keeps all that can be read", text)
            raise CorruptRecordException(text) from error

    def _segment_at(self, number: int) -> int:
        return bisect_right(self._segments, number, key=lambda segment: segment.first) - 1

    def _beyond(self, at: int) -> int:
        """The number after the last batch of a segment."""
        return self._segments[at + 1].first if at + 1 < len(self._segments) else self._end

    # writing

    def append(self, batch: bytearray) -> None:
        self._keeper.check()
        size = len(batch)
        if not self._segments or self._segments[-1].size + size > self._segment_bytes:
            self._segments.append(Segment(self.directory, int.from_bytes(batch[:8], "big"), self._end))
            self._keep_producers()
        self._add(self._segments[-1], size)
        self._unwritten.append(batch)
        self._keeper.log_changed(self)

    def delete(self, count: int, log_start_offset: int) -> None:
        self._deleted += count
        self._keeper.log_start_moved(self, log_start_offset)
        self._keep_producers()
        self._delete_segments()

    def _keep_producers(self) -> None:
        """Has the state of the producers stored, once the log begins behind a segment: until then a start learns it
        from the batches."""
        needed = self._segments[self._segment_at(self._deleted)].first if self._segments else self._end
        if needed > self._kept:
            self._kept = needed
            self._keeper.keep_producers(self.key, self._producer_state)

    def _add(self, segment: Segment, size: int) -> None:
        self._positions.append(segment.size)
        self._sizes.append(size)
        segment.size += size

    @property
    def _end(self) -> int:
        return self._first + len(self._sizes)

    def _delete_segments(self) -> None:
        # The last segment stays, because its name says where the log continues. A segment with unwritten batches stays.
        gone = min(self._deleted, self._written)
        count = 0
        while count + 1 < len(self._segments) and self._segments[count + 1].first <= gone:
            count += 1
        if count:
            self._removals += [segment.path for segment in self._segments[:count]]
            del self._segments[:count]
            beyond = self._segments[0].first - self._first
            del self._positions[:beyond], self._sizes[:beyond]
            self._first += beyond
            self._keeper.log_changed(self)

    # committing

    def take(self) -> tuple[list[SegmentWrite], list[str]]:
        """What the next commit writes, and the files that it removes. :meth:`written` must follow before the next
        :meth:`take`."""
        writes: list[SegmentWrite] = []
        for number, batch in enumerate(self._unwritten, start=self._written):
            segment = self._segments[self._segment_at(number)]
            if not writes or writes[-1].path != segment.path:
                position = self._positions[number - self._first]
                writes.append(SegmentWrite(segment.path, position, [], segment.path not in self._created))
            writes[-1].batches.append(batch)
        removals, self._removals = self._removals, []
        return writes, removals

    def written(self, writes: list[SegmentWrite]) -> None:
        """The result of :meth:`take` is in the files."""
        count = sum(len(write.batches) for write in writes)
        del self._unwritten[:count]
        self._written += count
        self._created.update(write.path for write in writes)
        self._delete_segments()

    # recovery

    def load(self, log_start_offset: int) -> Iterator[RecordBatch]:
        """Reads the directory, once, before any other call, and yields every batch of the log in order.

        The keeper receives the repairs and the damage; it repairs the files or refuses to start.
        """
        synced_to = self._keeper.recovery_point(self.key)
        found = self._base_offsets()
        recovery = LogRecovery(
            self._files, self.directory, found, log_start_offset, synced_to, recover=self._keeper.recover
        )
        unsynced: dict[str, None] = {}
        end = log_start_offset
        for base_offset, batch in recovery.read():
            if not self._segments or self._segments[-1].base_offset != base_offset:
                self._segments.append(Segment(self.directory, base_offset, self._end))
                self._created.add(self._segments[-1].path)
            self._add(self._segments[-1], batch.size_in_bytes)
            end = batch.last_offset + 1
            if end > synced_to:
                unsynced[self._segments[-1].path] = None
            yield batch
        self._written = self._end
        self._keeper.recovered(Recovered(self.key, end, recovery.damage, recovery.repairs, list(unsynced)))

    def segments(self) -> tuple[list[SegmentCheckpoint], int]:
        """The arguments of :meth:`restore`, once all batches are in their files."""
        found = []
        for at, segment in enumerate(self._segments):
            sizes = self._sizes[segment.first - self._first : self._beyond(at) - self._first]
            found.append(SegmentCheckpoint(segment.base_offset, sizes.tolist()))
        return found, self._deleted - self._first

    def restore(self, segments: Sequence[SegmentCheckpoint], deleted: int) -> bool:
        """Restores the log from its checkpoint, once, before any other call, without reading its files.

        Returns False if the names or sizes of the files have changed: then the caller uses :meth:`load`.
        """
        if [(one.base_offset, sum(one.sizes)) for one in segments] != self._files_found():
            log.warning("%s has changed since the clean shutdown: the start reads all of it", self.directory)
            return False
        for one in segments:
            segment = Segment(self.directory, one.base_offset, self._end)
            self._segments.append(segment)
            self._created.add(segment.path)
            for size in one.sizes:
                self._add(segment, size)
        self._written, self._deleted = self._end, deleted
        return True

    def _files_found(self) -> list[tuple[int, int]]:
        return [(offset, self._files.size(segment_path(self.directory, offset))) for offset in self._base_offsets()]

    def _base_offsets(self) -> list[int]:
        """The base offsets in the names of its files."""
        names = self._keeper.names(self.directory)
        return [offset for offset in map(base_offset_of, names) if offset is not None]

    def reset(self) -> None:
        """Drops all files: the log begins anew at another offset."""
        self._keeper.log_removed(segment_path(self.directory, offset) for offset in self._base_offsets())
        self._segments.clear()
        self._created.clear()
        self._first = self._deleted = self._written
        del self._positions[:], self._sizes[:]
