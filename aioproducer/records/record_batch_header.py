"""Writes the 61 bytes in front of a batch's records, with their checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i16, i32, i64, u8

from aioproducer.records.batch_layout import (
    BATCH_OVERHEAD,
    CONTROL,
    INSIDE_CRC,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    OUTSIDE_CRC,
    TRANSACTIONAL,
)
from aioproducer.records.compression import CompressionType
from aioproducer.records.crc32c import crc32c

if TYPE_CHECKING:
    # Compiled code reaches these through librt's C interface; interpreted code never uses them (see record_writer.py).
    from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be

_SMALL: Final = 4096

_UNCOMPRESSED: Final = CompressionType.NONE  # looking an enum member up is slow


def encode_batch_header(
    body: bytes,
    *,
    count: i64,
    base_timestamp: i64,
    max_timestamp: i64,
    codec: CompressionType = CompressionType.NONE,
    producer_id: i64 = -1,
    producer_epoch: i64 = -1,
    base_sequence: i64 = -1,
    transactional: bool = False,
    base_offset: i64 = 0,
    partition_leader_epoch: i64 = -1,
    log_append_time: bool = False,
    control: bool = False,
) -> bytes:
    """The header for ``body``, which holds ``count`` records with offset deltas 0, 1, 2, …

    ``body`` is already compressed if ``codec`` says so. Timestamps are in milliseconds since the epoch. Header and body
    stay separate, so that both can be written to the socket without a copy.
    """
    attributes: i64 = 0
    if codec is not _UNCOMPRESSED:
        attributes = int(codec)
    if log_append_time:
        attributes |= LOG_APPEND_TIME
    if transactional:
        attributes |= TRANSACTIONAL
    if control:
        attributes |= CONTROL
    inside = _inside_crc(
        attributes, count - 1, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count
    )
    length = BATCH_OVERHEAD - LOG_OVERHEAD + len(body)
    # Copying a small batch is cheaper than another call.
    crc = crc32c(inside + body) if length < _SMALL else crc32c(inside, body)
    return _outside_crc(base_offset, length, partition_leader_epoch, MAGIC, crc) + inside


def _inside_crc(
    attributes: i64,
    last_offset_delta: i64,
    base_timestamp: i64,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i64,
    base_sequence: i64,
    count: i64,
) -> bytes:
    writer = BytesWriter()
    write_i16_be(writer, i16(attributes))
    write_i32_be(writer, i32(last_offset_delta))
    write_i64_be(writer, base_timestamp)
    write_i64_be(writer, max_timestamp)
    write_i64_be(writer, producer_id)
    write_i16_be(writer, i16(producer_epoch))
    write_i32_be(writer, i32(base_sequence))
    write_i32_be(writer, i32(count))
    return writer.getvalue()


def _outside_crc(base_offset: i64, length: i64, partition_leader_epoch: i64, magic: i64, crc: i64) -> bytes:
    writer = BytesWriter()
    write_i64_be(writer, base_offset)
    write_i32_be(writer, i32(length))
    write_i32_be(writer, i32(partition_leader_epoch))
    writer.append(u8(magic))
    write_i32_be(writer, i32(crc))
    return writer.getvalue()


if hasattr(_inside_crc, "__code__") and not TYPE_CHECKING:
    # Interpreted: a native function has no code object.
    _inside_crc = INSIDE_CRC.pack
    _outside_crc = OUTSIDE_CRC.pack
