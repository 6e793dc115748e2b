"""``batch_columns`` for the interpreter: the same columns, made of the objects that ``record_reader`` reads."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate
from typing import final

from aioproducer.records.column_buffers import ByteBuffers, ColumnBuffers, HeaderBuffers
from aioproducer.records.record import Record
from aioproducer.records.record_reader import read_records

_RECORD_COST = 16


@final
class BatchColumns:
    """See ``batch_columns``."""

    def __init__(self, keys: bool, values: bool, headers: bool) -> None:
        self._records: list[Record] = []
        self._keys, self._values, self._headers = keys, values, headers
        self._size = 0

    @property
    def count(self) -> int:
        """Records held."""
        return len(self._records)

    def size(self) -> int:
        """Bytes held, the records' own and 16 for each."""
        return self._size

    def append(
        self,
        body: bytes,
        count: int,
        base_offset: int,
        last_offset_delta: int,
        base_timestamp: int,
        log_append_time: int | None,
        begin: int,
        end: int,
    ) -> int:
        """Adds the records with offsets from ``begin`` to before ``end``; returns how many."""
        records = read_records(
            body,
            count=count,
            base_offset=base_offset,
            last_offset_delta=last_offset_delta,
            base_timestamp=base_timestamp,
            log_append_time=log_append_time,
        )
        taken = [record for record in list(records) if begin <= record.offset < end]
        self._records += taken
        self._size += sum(map(self._size_of, taken))
        return len(taken)

    def _size_of(self, record: Record) -> int:
        size = _RECORD_COST
        if self._keys:
            size += len(record.key or b"")
        if self._values:
            size += len(record.value or b"")
        if self._headers:
            size += sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
        return size

    def buffers(self) -> ColumnBuffers:
        """The columns held."""
        records = self._records
        return ColumnBuffers(
            len(records),
            struct.pack(f"<{len(records)}q", *(record.offset for record in records)),
            struct.pack(f"<{len(records)}q", *(record.timestamp_ms for record in records)),
            _byte_buffers([record.key for record in records]) if self._keys else None,
            _byte_buffers([record.value for record in records]) if self._values else None,
            _header_buffers([record.headers for record in records]) if self._headers else None,
        )


def _ends(sizes: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(sizes) + 1}i", *accumulate(sizes, initial=0))


def _byte_buffers(rows: Sequence[bytes | None]) -> ByteBuffers:
    valid = None
    if None in rows:
        bits = bytearray((len(rows) + 7) // 8)
        for row, value in enumerate(rows):
            if value is not None:
                bits[row >> 3] |= 1 << (row & 7)
        valid = bytes(bits)
    held = [row or b"" for row in rows]
    return ByteBuffers(_ends([len(row) for row in held]), b"".join(held), valid)


def _header_buffers(rows: Sequence[tuple[tuple[str, bytes | None], ...]]) -> HeaderBuffers:
    headers = [header for row in rows for header in row]
    return HeaderBuffers(
        _ends([len(row) for row in rows]),
        _byte_buffers([name.encode() for name, _ in headers]),
        _byte_buffers([value for _, value in headers]),
    )
