"""One file of a partition's log: record batches one after the other, as Kafka lays them out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from aioproducer.broker.storage.files import Files
from aioproducer.broker.storage.segments.checksums import FileChecksums
from aioproducer.errors import CorruptRecordException
from aioproducer.records.batch_layout import (
    ATTRIBUTES_OFFSET,
    BATCH_OVERHEAD,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_OFFSET,
)
from aioproducer.records.record_batch import RecordBatch, check_count, check_magic, wrong_crc

SUFFIX = ".log"
_CHUNK = 1024 * 1024


@dataclass(slots=True)
class Segment:
    """A file named after the offset of its first record; ``first`` is the number of its first batch in the log."""

    directory: str
    base_offset: int
    first: int
    size: int = 0

    @property
    def path(self) -> str:
        return segment_path(self.directory, self.base_offset)


def segment_path(directory: str, base_offset: int) -> str:
    return f"{directory}/{base_offset:020}{SUFFIX}"


def base_offset_of(name: str) -> int | None:
    """The base offset in the name of a segment; None for other names."""
    digits = name.removesuffix(SUFFIX)
    return int(digits) if name.endswith(SUFFIX) and digits.isdecimal() and len(digits) == 20 else None


class Good(NamedTuple):
    """A whole batch with the right CRC."""

    position: int
    batch: RecordBatch


class Bad(NamedTuple):
    """Bytes that do not continue the log, up to the next batch that may, or to the end of the file."""

    position: int
    end: int
    reason: str


def read_segment(files: Files, path: str, next_offset: int) -> Iterator[Good | Bad]:
    """Reads a segment in order. The first batch must begin at ``next_offset``, each later one where the last one ended;
    after bad bytes, offsets may be skipped.

    A batch is bad if it is incomplete, not of format v2, if its CRC is wrong, or if its offsets do not follow. At most
    one batch and a chunk of the file are in memory. The work is proportional to the file's size, also if it is damaged.
    """
    reader = _SegmentReader(files, path)
    position = 0
    after_bad = False
    while position < reader.end:
        try:
            batch = reader.batch(position, next_offset, or_later=after_bad)
        except _BadBatch as error:
            beyond = reader.next_batch(position, next_offset)
            yield Bad(position, beyond, str(error))
            position, after_bad = beyond, True
        else:
            yield Good(position, batch)
            next_offset, after_bad = batch.last_offset + 1, False
            position += batch.size_in_bytes


class _BadBatch(Exception):
    pass


class _SegmentReader:
    """Reads the batches of one file through a window."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self.end = files.size(path)
        self._start = 0
        self._window = b""
        self._checksums = FileChecksums(files, path)

    def batch(self, position: int, next_offset: int, *, or_later: bool) -> RecordBatch:
        """The batch at ``position``, which has the next offset, or a later one if that is allowed."""
        head = self._read(position, BATCH_OVERHEAD)
        size = _size(head)
        if not BATCH_OVERHEAD <= size <= self.end - position:
            raise _BadBatch(f"a batch claims to have {size} bytes, but {self.end - position} are left")
        try:
            if size > _CHUNK:
                self._check_before_reading(position, size, head)
            batch = RecordBatch(self._read(position, size))
            batch.verify()
        except CorruptRecordException as error:
            raise _BadBatch(str(error)) from error
        follows = batch.base_offset >= next_offset if or_later else batch.base_offset == next_offset
        if not follows or batch.last_offset_delta < 0:
            raise _BadBatch(f"a batch has offsets {batch.base_offset} to {batch.last_offset}, expected {next_offset}")
        return batch

    def next_batch(self, position: int, next_offset: int) -> int:
        """The position of the first good batch after a bad one; the end of the file if there is none."""
        size = _size(self._read(position, LOG_OVERHEAD))
        if size >= BATCH_OVERHEAD:
            head = self._files.read(self._path, position + size, BATCH_OVERHEAD)
            if self._is_batch(position + size, head, next_offset):
                return position + size
        position += 1
        while position + BATCH_OVERHEAD <= self.end:
            self._read(position, BATCH_OVERHEAD)
            at = self._window.find(MAGIC, position - self._start + MAGIC_OFFSET) - MAGIC_OFFSET
            last = len(self._window) - BATCH_OVERHEAD
            while 0 <= at <= last:
                if self._is_batch(self._start + at, self._window[at : at + BATCH_OVERHEAD], next_offset):
                    return self._start + at
                at = self._window.find(MAGIC, at + 1 + MAGIC_OFFSET) - MAGIC_OFFSET
            position = self._start + last + 1
        return self.end

    def _read(self, position: int, size: int) -> bytes:
        at = position - self._start
        if not 0 <= at <= len(self._window) - size:
            self._window = b""
            self._window = self._files.read(self._path, position, min(max(_CHUNK, size), self.end - position))
            self._start, at = position, 0
        return self._window[at : at + size]

    def _check_before_reading(self, position: int, size: int, head: bytes) -> None:
        """Finds out that a large batch is bad without having all of it in memory: its size may be what is wrong."""
        check_magic(head[MAGIC_OFFSET])
        crc, actual = _crc(head), self._crc_found(position, size)
        if actual != crc:
            raise wrong_crc(int.from_bytes(head[:8], "big", signed=True), actual, crc)

    def _is_batch(self, position: int, head: bytes, next_offset: int) -> bool:
        """Whether a batch begins here that :meth:`batch` takes, by its header and its CRC alone: most candidates are
        other bytes, and claim any size."""
        size = _size(head)
        if len(head) < BATCH_OVERHEAD or not BATCH_OVERHEAD <= size <= self.end - position:
            return False
        base_offset, _, _, magic, _, attributes, last_offset_delta, *_, count = HEADER.unpack(head)
        if magic != MAGIC or base_offset < next_offset or last_offset_delta < 0:
            return False
        try:
            check_count(base_offset, size, attributes, last_offset_delta, count)
        except CorruptRecordException:
            return False
        return self._crc_found(position, size) == _crc(head)

    def _crc_found(self, position: int, size: int) -> int:
        return self._checksums.of(position + ATTRIBUTES_OFFSET, position + size)


def _size(head: bytes) -> int:
    return LOG_OVERHEAD + int.from_bytes(head[8:LOG_OVERHEAD], "big", signed=True)


def _crc(head: bytes) -> int:
    return int.from_bytes(head[MAGIC_OFFSET + 1 : ATTRIBUTES_OFFSET], "big")
