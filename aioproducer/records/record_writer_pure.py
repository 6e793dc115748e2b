"""``record_writer`` for the interpreter: the same names and, byte for byte, the same records.

An interpreted step costs as much as many compiled ones, so hardly anything is computed here: varints are looked up, and
a record is one join of ready pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

__all__ = ["MAX_RECORD_OVERHEAD", "RecordWriter", "record_size_upper_bound", "varint_size"]

MAX_RECORD_OVERHEAD: Final = 21
"""The most bytes a record takes besides key, value and headers: length 5, attributes 1, timestamp 10, offset 5."""


def _encode_varint(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append((rest & 0x7F) | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


_VARINTS: Final = {value: _encode_varint(value) for value in range(-4096, 4096)}
"""The varints of nearly all numbers that records are made of; beyond 4 KB or 4 s the bytes themselves cost more."""

_LENGTH_AND_BYTES: Final = {length: len(_VARINTS[length]) + max(length, 0) for length in range(-1, 4096)}
_ATTRIBUTES_AND_TIMESTAMP: Final = {delta: b"\0" + varint for delta, varint in _VARINTS.items()}


def _varint(value: int) -> bytes:
    return _VARINTS.get(value) or _encode_varint(value)


def varint_size(value: int) -> int:
    """Bytes of ``value`` (any signed 64-bit number) as a zigzag varint: 1 to 10."""
    return len(_varint(value))


def record_size_upper_bound(key_size: int, value_size: int, headers: Sequence[tuple[str, bytes | None]] | None) -> int:
    """The most bytes that ``RecordWriter.append`` adds, whatever the (64-bit) timestamp and (32-bit) offset delta.

    Sizes in bytes, -1 for None. A batch's own 61 bytes (``BATCH_OVERHEAD``) are not included.
    Source: ``DefaultRecord.recordSizeUpperBound``.
    """
    try:
        size = MAX_RECORD_OVERHEAD + _LENGTH_AND_BYTES[key_size] + _LENGTH_AND_BYTES[value_size]
    except KeyError:
        size = MAX_RECORD_OVERHEAD + varint_size(key_size) + varint_size(value_size) + max(key_size, 0)
        size += max(value_size, 0)
    if not headers:
        return size + 1
    return size + len(_encode_headers(headers))


def _encode_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    pieces = [_varint(len(headers))]
    for name, value in headers:
        encoded_name = name.encode()
        pieces += (_varint(len(encoded_name)), encoded_name)
        if value is None:
            pieces.append(b"\1")
        else:
            pieces += (_varint(len(value)), value)
    return b"".join(pieces)


@final
class RecordWriter:
    """The records of one batch, without the batch's header."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records = bytearray()

    def append(
        self,
        offset_delta: int,
        timestamp_delta: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] | None,
    ) -> None:
        """Writes one record: all of it, or nothing if a header is invalid, which raises.

        ``offset_delta`` counts from the batch's base offset, ``timestamp_delta`` is in milliseconds from its base
        timestamp and may be negative.
        """
        # Spelled out for the usual shapes of records, because every further piece and call would add a tenth to the
        # cost.
        tail = _encode_headers(headers) if headers else b"\0"
        try:
            varints = _VARINTS
            head = _ATTRIBUTES_AND_TIMESTAMP[timestamp_delta]
            if value is None:
                if key is None:
                    record = b"".join((head, varints[offset_delta], b"\1\1", tail))
                else:
                    record = b"".join((head, varints[offset_delta], varints[len(key)], key, b"\1", tail))
            elif key is None:
                record = b"".join((head, varints[offset_delta], b"\1", varints[len(value)], value, tail))
            else:
                record = b"".join(
                    (head, varints[offset_delta], varints[len(key)], key, varints[len(value)], value, tail)
                )
        except KeyError:
            record = b"".join(
                (
                    b"\0",
                    _varint(timestamp_delta),
                    _varint(offset_delta),
                    b"\1" if key is None else _varint(len(key)),
                    key or b"",
                    b"\1" if value is None else _varint(len(value)),
                    value or b"",
                    tail,
                )
            )
        length = varints.get(len(record))
        records = self._records
        records += _encode_varint(len(record)) if length is None else length
        records += record

    def append_rest(self, offset_delta: int, timestamp_delta: int, data: bytes, begin: int, end: int) -> None:
        """Writes a record whose bytes from the length of its key on are those of ``data`` from ``begin`` to ``end``."""
        timestamp, offset = _varint(timestamp_delta), _varint(offset_delta)
        length = _varint(1 + len(timestamp) + len(offset) + end - begin)
        self._records += b"".join((length, b"\0", timestamp, offset, data[begin:end]))

    def size(self) -> int:
        """Bytes written so far."""
        return len(self._records)

    def freeze(self) -> bytes:
        """A copy of the bytes written."""
        return bytes(self._records)

    def clear(self) -> None:
        """Empties it for another batch."""
        self._records.clear()
