"""Walks the records that a ``RecordWriter`` wrote, to write them into other batches."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from aioproducer.records.record_writer import RecordWriter


@final
class WrittenRecords:
    """A cursor over the records of one batch, which has at least one. It starts at the first.

    Only for the producer's own bytes: their lengths are trusted.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._begin: i64 = 0
        self._end: i64 = 0
        self.rest: i64 = 0
        """Bytes of the record from the length of its key on; before that come ``MAX_RECORD_OVERHEAD`` at most."""
        self.next()

    def next(self) -> None:
        """Moves to the next record, which must exist."""
        data = self._data
        pos = self._end
        byte: i64 = data[pos]
        pos += 1
        size = byte & 0x7F
        shift: i64 = 7
        while byte > 0x7F:
            byte = data[pos]
            pos += 1
            size |= (byte & 0x7F) << shift
            shift += 7
        self._end = pos + (size >> 1)  # in zigzag form, and never negative
        pos += 1  # the attributes
        while data[pos] > 0x7F:  # the timestamp
            pos += 1
        pos += 1
        while data[pos] > 0x7F:  # the offset
            pos += 1
        self._begin = pos + 1
        self.rest = self._end - self._begin

    def write_to(self, records: RecordWriter, offset_delta: i64, timestamp_delta: i64) -> None:
        """Writes the record as a batch's next one (``RecordWriter.append`` explains the deltas)."""
        records.append_rest(offset_delta, timestamp_delta, self._data, self._begin, self._end)
