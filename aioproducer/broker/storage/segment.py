"""One file of a partition's log: record batches one after the other, as Kafka lays them out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from aioproducer.broker.storage.files import Files
from aioproducer.errors import CorruptRecordException
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import BATCH_OVERHEAD, LOG_OVERHEAD, MAGIC, MAGIC_OFFSET

SUFFIX = ".log"
_CHUNK = 1024 * 1024


@dataclass(slots=True)
class Segment:
    """A file named by the offset of its first record; ``first`` is the number of its first batch in the partition."""

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
    """The base offset in the name of a segment; None for the name of anything else."""
    digits = name.removesuffix(SUFFIX)
    return int(digits) if name.endswith(SUFFIX) and digits.isdecimal() and len(digits) == 20 else None


class Good(NamedTuple):
    """A whole batch with the right CRC."""

    position: int
    batch: RecordBatch


class Bad(NamedTuple):
    """Bytes that are no batch which continues the log, up to the next one that may, or to the end of the file."""

    position: int
    end: int
    reason: str


def read_segment(files: Files, path: str, next_offset: int) -> Iterator[Good | Bad]:
    """Everything in a segment, in order. The first batch has ``next_offset``, each one the offset that follows; after
    what is bad the offsets may be larger.

    A batch is bad if it is not whole, not of format v2, has another CRC than it says, or other offsets than follow. At
    most one batch and a chunk of the file are in memory.
    """
    end = files.size(path)
    position = start = 0
    data = b""
    after_bad = False
    while position < end:
        if len(data) - (position - start) < BATCH_OVERHEAD:
            start, data = position, files.read(path, position, min(_CHUNK, end - position))
        at = position - start
        size = _size(data, at)
        try:
            if not BATCH_OVERHEAD <= size <= end - position:
                raise _BadBatch(f"a batch that says it has {size} bytes, where {end - position} are left")
            if len(data) - at < size:
                start, at, data = position, 0, files.read(path, position, max(_CHUNK, size))
            batch = _checked(data[at : at + size], next_offset, or_later=after_bad)
        except _BadBatch as error:
            beyond = _next_batch(files, path, position, end, next_offset)
            yield Bad(position, beyond, str(error))
            position, after_bad = beyond, True
            start, data = position, b""
        else:
            yield Good(position, batch)
            next_offset, after_bad = batch.last_offset + 1, False
            position += size


class _BadBatch(Exception):
    pass


def _size(data: bytes, at: int) -> int:
    return LOG_OVERHEAD + int.from_bytes(data[at + 8 : at + LOG_OVERHEAD], "big", signed=True)


def _checked(data: bytes, next_offset: int, *, or_later: bool) -> RecordBatch:
    try:
        batch = RecordBatch(data)
        batch.verify()
    except CorruptRecordException as error:
        raise _BadBatch(str(error)) from error
    follows = batch.base_offset >= next_offset if or_later else batch.base_offset == next_offset
    if not follows or batch.last_offset_delta < 0:
        raise _BadBatch(f"offsets {batch.base_offset} to {batch.last_offset} where {next_offset} follows")
    return batch


def _next_batch(files: Files, path: str, position: int, end: int, next_offset: int) -> int:
    """Where the next good batch behind a bad one begins; ``end`` if there is none."""
    size = _size(files.read(path, position, LOG_OVERHEAD), 0)
    if size >= BATCH_OVERHEAD and _is_batch(files, path, position + size, end, next_offset):
        return position + size
    start = position + 1
    while start + BATCH_OVERHEAD <= end:
        data = files.read(path, start, min(_CHUNK, end - start))
        at = data.find(MAGIC, MAGIC_OFFSET)
        while at >= 0:
            where = start + at - MAGIC_OFFSET
            if _is_batch(files, path, where, end, next_offset, data[at - MAGIC_OFFSET : at]):
                return where
            at = data.find(MAGIC, at + 1)
        start += len(data) - MAGIC_OFFSET
    return end


def _is_batch(files: Files, path: str, position: int, end: int, next_offset: int, head: bytes = b"") -> bool:
    head = head or files.read(path, position, LOG_OVERHEAD)
    size = _size(head, 0)
    if not BATCH_OVERHEAD <= size <= end - position or int.from_bytes(head[:8], "big") < next_offset:
        return False
    try:
        _checked(files.read(path, position, size), next_offset, or_later=True)
    except _BadBatch:
        return False
    return True
