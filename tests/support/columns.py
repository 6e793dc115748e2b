"""Columns in Arrow's layout, made by hand, with the offsets of slices."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from aioproducer.records.record_columns import ByteColumn, HeaderColumn, NumberColumn, RecordColumns

Row = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]] | None]
"""Value, key, headers."""


def valid_bits(rows: Sequence[object], first_bit: int) -> bytes | None:
    if all(row is not None for row in rows):
        return None
    bits = 0
    for at, row in enumerate(rows):
        bits |= (row is not None) << (first_bit + at)
    return bits.to_bytes((first_bit + len(rows)) // 8 + 1, "little")


def ends_of(sizes: Sequence[int], base: int, width: int = 8) -> bytes:
    ends = [base]
    for size in sizes:
        ends.append(ends[-1] + size)
    return struct.pack(f"<{len(ends)}{'q' if width == 8 else 'i'}", *ends)


def byte_column(rows: Sequence[bytes | None], *, base: int = 0, first_bit: int = 0, width: int = 8) -> ByteColumn:
    # The bytes of a null may be anything.
    held = [b"null" if row is None else row for row in rows]
    ends = ends_of([len(row) for row in held], base, width)
    return ByteColumn(b"".join(held), ends, base, valid_bits(rows, first_bit), first_bit, width)


def number_column(rows: Sequence[int | None], *, first_bit: int = 0) -> NumberColumn:
    data = struct.pack(f"<{len(rows)}q", *(12345 if row is None else row for row in rows))
    return NumberColumn(data, valid_bits(rows, first_bit), first_bit)


def header_column(
    rows: Sequence[Sequence[tuple[str, bytes | None]] | None], *, base: int = 0, first_bit: int = 0
) -> HeaderColumn:
    entries = [header for row in rows for header in row or ()]
    return HeaderColumn(
        ends_of([len(row or ()) for row in rows], base),
        base,
        valid_bits(rows, first_bit),
        first_bit,
        byte_column([name.encode() for name, _ in entries], base=3),
        byte_column([value for _, value in entries], first_bit=5),
    )


def record_columns(rows: Sequence[Row], *, base: int = 0, first_bit: int = 0) -> RecordColumns:
    values, keys, headers = ([row[at] for row in rows] for at in range(3))
    return RecordColumns(
        byte_column(values, base=base, first_bit=first_bit),  # type: ignore[arg-type]
        byte_column(keys, base=base + 1, first_bit=first_bit, width=4),  # type: ignore[arg-type]
        header_column(headers, base=base, first_bit=first_bit),  # type: ignore[arg-type]
    )
