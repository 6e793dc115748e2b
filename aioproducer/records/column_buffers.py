"""Records as columns, in Arrow's buffer layout. Numbers are little-endian."""

from __future__ import annotations

from typing import NamedTuple


class ByteBuffers(NamedTuple):
    """A column of bytes."""

    ends: bytes
    """32-bit numbers, one more than there are rows: where each row begins, and where the last ends."""
    data: bytes
    valid: bytes | None
    """A bit for each row that is not null; None if all of them are not."""


class HeaderBuffers(NamedTuple):
    """A column of lists of headers."""

    ends: bytes
    """32-bit numbers, one more than there are rows: which header each list begins with."""
    names: ByteBuffers
    """In UTF-8."""
    values: ByteBuffers


class ColumnBuffers(NamedTuple):
    """``rows`` records. A column that was not requested is None."""

    rows: int
    offsets: bytes
    """64-bit numbers."""
    timestamps: bytes
    """64-bit numbers, in milliseconds since 1970."""
    keys: ByteBuffers | None
    values: ByteBuffers | None
    headers: HeaderBuffers | None
