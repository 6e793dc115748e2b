"""Finds the first record of a batch with a timestamp, for ListOffsets."""

from __future__ import annotations

from typing import NamedTuple

from aioproducer.broker.log.log_validator import MAX_DECOMPRESSED_SIZE
from aioproducer.broker.log.record_walk import RecordWalk
from aioproducer.errors import CorruptRecordException
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.compression import CompressionType, decompress
from aioproducer.records.record_batch import RecordBatch
from aioproducer.types import TimestampType

_RECORDS_AT_ONCE = 20_000
"""How many records are read before other threads may run."""


_FAR = 2**61
"""Milliseconds; no two timestamps are further apart."""


class TimestampAndOffset(NamedTuple):
    """A record found by its timestamp (ms)."""

    timestamp: int
    offset: int
    leader_epoch: int


class TimestampSearch(NamedTuple):
    """A search in a batch, from ``first_offset`` on, for the first record with this timestamp (ms) or a later one."""

    batch: RecordBatch
    timestamp: int
    first_offset: int

    @property
    def is_quick(self) -> bool:
        """Whether the batch is not compressed."""
        return self.batch.codec is CompressionType.NONE

    def run(self) -> TimestampAndOffset | None:
        """Reads only the batch, so any thread may call it. Raises :class:`CorruptRecordException`."""
        batch = self.batch
        base, epoch = batch.base_offset, batch.partition_leader_epoch
        first = max(self.first_offset - base, 0)
        if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            found = batch.max_timestamp >= self.timestamp and first < batch.count
            return TimestampAndOffset(batch.max_timestamp, base + first, epoch) if found else None
        records = decompress(batch.codec, bytes(memoryview(batch.data)[BATCH_OVERHEAD:]), MAX_DECOMPRESSED_SIZE)
        wanted = min(max(self.timestamp - batch.base_timestamp, -_FAR), _FAR)
        walk = RecordWalk(records, 0, batch.count, wanted=wanted, first=first)
        while not walk.advance(_RECORDS_AT_ONCE) and walk.found < 0:
            pass
        if walk.found >= 0:
            return TimestampAndOffset(batch.base_timestamp + walk.found_delta, base + walk.found, epoch)
        if walk.problem:
            raise CorruptRecordException(f"batch at offset {base}: {walk.problem}")
        return None
