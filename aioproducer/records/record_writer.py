"""Writes the records of one batch: the innermost loop of the producer.

Layout of a record (Kafka's record format v2, ``org.apache.kafka.common.record.DefaultRecord``; every number but the
attributes is a zigzag varint):

    length · attributes (1 byte, 0) · timestamp delta · offset delta · key length · key · value length · value
           · number of headers · (key length · key in UTF-8 · value length · value)*

A length of -1 stands for None. The 61 bytes in front of a batch's records belong to ``batch_layout``.

Interpreted, the same names come from ``record_writer_pure``, which is written for the interpreter; both write the same
bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i16, i32, i64, mypyc_attr, u8

if TYPE_CHECKING:
    # No import at run time: compiled code reaches BytesWriter through librt's C interface, and interpreted code never
    # uses it, so librt need not even be installed.
    from librt.strings import BytesWriter, read_i64_le, write_i16_le, write_i32_le, write_i64_le

__all__ = ["MAX_RECORD_OVERHEAD", "RecordWriter", "record_size_upper_bound", "varint_size"]

MAX_RECORD_OVERHEAD: Final = 21
"""The most bytes a record takes besides key, value and headers: length 5, attributes 1, timestamp 10, offset 5."""

_SHORT: Final[i64] = 0x1FFF - 5
"""Up to this many bytes from its key on, a record's length takes two bytes, whatever comes before the key."""

_BY_WORDS: Final[i64] = 64
"""Bytes up to which it is cheaper to copy words than to make an object to copy from."""

# Signed shifts copy the sign; this mask removes it.
_WITHOUT_TOP_7_BITS: Final[i64] = 0x01FF_FFFF_FFFF_FFFF


def varint_size(value: i64) -> i64:
    """Bytes of ``value`` (any signed 64-bit number) as a zigzag varint: 1 to 10."""
    rest: i64 = (value << 1) ^ (value >> 63)
    size: i64 = 1
    while rest & ~0x7F != 0:
        rest = (rest >> 7) & _WITHOUT_TOP_7_BITS
        size += 1
    return size


def record_size_upper_bound(key_size: i64, value_size: i64, headers: Sequence[tuple[str, bytes | None]] | None) -> i64:
    """The most bytes that ``RecordWriter.append`` adds, whatever the (64-bit) timestamp and (32-bit) offset delta.

    Sizes in bytes, -1 for None. A batch's own 61 bytes (``BATCH_OVERHEAD``) are not included.
    Source: ``DefaultRecord.recordSizeUpperBound``.
    """
    size: i64 = MAX_RECORD_OVERHEAD + varint_size(key_size) + varint_size(value_size)
    if key_size > 0:
        size += key_size
    if value_size > 0:
        size += value_size
    if not headers:
        return size + 1
    size += varint_size(len(headers))
    for name, value in headers:
        name_size: i64 = len(name) if name.isascii() else len(name.encode())
        size += varint_size(name_size) + name_size
        if value is None:
            size += 1
        else:
            value_length: i64 = len(value)
            size += varint_size(value_length) + value_length
    return size


def write_varint(writer: BytesWriter, value: i64) -> None:
    """Appends ``value`` (any signed 64-bit number) as a zigzag varint; compiled only."""
    rest: i64 = (value << 1) ^ (value >> 63)
    if rest & ~0x3FFF == 0 and rest > 0x7F:  # most sizes, in one step
        write_i16_le(writer, i16((rest & 0x7F) | 0x80 | ((rest >> 7) << 8)))
        return
    while rest & ~0x7F != 0:
        writer.append(u8((rest & 0x7F) | 0x80))
        rest = (rest >> 7) & _WITHOUT_TOP_7_BITS
    writer.append(u8(rest))


def write_head(writer: BytesWriter, rest: i64, timestamp_delta: i64, offset_delta: i64) -> None:
    """Appends the head of a record, which has ``rest`` bytes from its key on; compiled only."""
    timestamp = (timestamp_delta << 1) ^ (timestamp_delta >> 63)
    offset = (offset_delta << 1) ^ (offset_delta >> 63)
    if (timestamp | offset) & ~0x3FFF != 0 or rest > _SHORT:
        write_varint(writer, 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + rest)
        writer.append(u8(0))
        write_varint(writer, timestamp_delta)
        write_varint(writer, offset_delta)
        return
    # Most records: numbers of one or two bytes, put together in a register, behind the attributes, which are 0.
    word = timestamp << 8
    width: i64 = 16
    if timestamp > 0x7F:
        word = ((timestamp & 0x7F) | 0x80 | (timestamp >> 7) << 8) << 8
        width = 24
    if offset > 0x7F:
        word |= ((offset & 0x7F) | 0x80 | (offset >> 7) << 8) << width
        width += 16
    else:
        word |= offset << width
        width += 8
    length = ((width >> 3) + rest) << 1
    if length > 0x7F:
        word = word << 16 | (length & 0x7F) | 0x80 | (length >> 7) << 8
        width += 16
    else:
        word = word << 8 | length
        width += 8
    write_i32_le(writer, i32(word))
    word >>= 32
    width -= 32
    if width >= 16:
        write_i16_le(writer, i16(word))
        word >>= 16
        width -= 16
    if width > 0:
        writer.append(u8(word & 0xFF))


def _write_bytes(writer: BytesWriter, data: bytes | None) -> None:
    if data is None:
        writer.append(u8(1))
    else:
        write_varint(writer, len(data))
        writer.write(data)


@final
@mypyc_attr(acyclic=True)
class RecordWriter:
    """The records of one batch, without the batch's header."""

    def __init__(self) -> None:
        self._records = BytesWriter()
        self._headers = BytesWriter()

    def append(
        self,
        offset_delta: i64,
        timestamp_delta: i64,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] | None,
    ) -> None:
        """Writes one record: all of it, or nothing if a header is invalid, which raises.

        ``offset_delta`` counts from the batch's base offset, ``timestamp_delta`` is in milliseconds from its base
        timestamp and may be negative.
        """
        key_size: i64 = -1 if key is None else len(key)
        value_size: i64 = -1 if value is None else len(value)
        rest: i64 = varint_size(key_size) + varint_size(value_size)
        if key_size > 0:
            rest += key_size
        if value_size > 0:
            rest += value_size
        encoded_headers: bytes | None = None
        if headers:
            encoded_headers = self._encode_headers(headers)
            rest += len(encoded_headers)
        else:
            rest += 1

        records = self._records
        write_head(records, rest, timestamp_delta, offset_delta)
        _write_bytes(records, key)
        _write_bytes(records, value)
        if encoded_headers is None:
            records.append(u8(0))
        else:
            records.write(encoded_headers)

    def append_rest(self, offset_delta: i64, timestamp_delta: i64, data: bytes, begin: i64, end: i64) -> None:
        """Writes a record whose bytes from the length of its key on are those of ``data`` from ``begin`` to ``end``."""
        records = self._records
        write_head(records, end - begin, timestamp_delta, offset_delta)
        if end - begin > _BY_WORDS:
            records.write(data[begin:end])
            return
        at = begin
        while at + 8 <= end:
            write_i64_le(records, read_i64_le(data, at))
            at += 8
        while at < end:
            records.append(u8(data[at]))
            at += 1

    def _encode_headers(self, headers: Sequence[tuple[str, bytes | None]]) -> bytes:
        writer = self._headers
        writer.truncate(0)
        # Of a list, mypyc makes a loop in C.
        pairs = headers if isinstance(headers, list) else list(headers)
        write_varint(writer, len(pairs))
        for name, value in pairs:
            _write_bytes(writer, name.encode())
            _write_bytes(writer, value)
        return writer.getvalue()

    def size(self) -> i64:
        """Bytes written so far."""
        return len(self._records)

    def freeze(self) -> bytes:
        """A copy of the bytes written."""
        return self._records.getvalue()

    def clear(self) -> None:
        """Empties it for another batch; its memory is kept."""
        self._records.truncate(0)


if hasattr(RecordWriter.append, "__code__") and not TYPE_CHECKING:
    # Interpreted (a native method has no code object), so the interpreter's twin takes over.
    from aioproducer.records.record_writer_pure import RecordWriter, record_size_upper_bound, varint_size
