"""One file of a partition's log: record batches one after the other, as Kafka lays them out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aioproducer.broker.storage.files import Files
from aioproducer.errors import CorruptRecordException
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import BATCH_OVERHEAD, LOG_OVERHEAD

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
        return f"{self.directory}/{self.base_offset:020}{SUFFIX}"


def base_offset_of(name: str) -> int | None:
    """The base offset in the name of a segment; None for the name of anything else."""
    digits = name.removesuffix(SUFFIX)
    return int(digits) if name.endswith(SUFFIX) and digits.isdecimal() and len(digits) == 20 else None


class BadBatch(Exception):
    """What lies at ``position`` of a segment is no whole batch that continues the log."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position


def scan(files: Files, path: str, next_offset: int) -> Iterator[RecordBatch]:
    """Every batch of a segment, from ``next_offset`` on without a gap.

    At most one batch and a chunk of the file are in memory. Raises :class:`BadBatch` at the first that is not whole,
    not of format v2, has another CRC than it says, or other offsets than follow.
    """
    end = files.size(path)
    position = start = 0
    data = b""
    while position < end:
        if len(data) - (position - start) < BATCH_OVERHEAD:
            start, data = position, files.read(path, position, min(_CHUNK, end - position))
        at = position - start
        size = LOG_OVERHEAD + int.from_bytes(data[at + 8 : at + LOG_OVERHEAD], "big", signed=True)
        if not BATCH_OVERHEAD <= size <= end - position:
            raise BadBatch(position, f"a batch that says it has {size} bytes, where {end - position} are left")
        if len(data) - at < size:
            start, at, data = position, 0, files.read(path, position, max(_CHUNK, size))
        batch = _checked(data[at : at + size], position, next_offset)
        yield batch
        next_offset = batch.last_offset + 1
        position += size


def _checked(data: bytes, position: int, next_offset: int) -> RecordBatch:
    try:
        batch = RecordBatch(data)
        batch.verify()
    except CorruptRecordException as error:
        raise BadBatch(position, str(error)) from error
    if batch.base_offset != next_offset or batch.last_offset_delta < 0:
        raise BadBatch(position, f"offsets {batch.base_offset} to {batch.last_offset} where {next_offset} follows")
    return batch
