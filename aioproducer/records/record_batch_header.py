"""The 61 bytes in front of a batch's records.

    base offset (8) · length of what follows (4) · partition leader epoch (4) · magic (1) · CRC (4) · attributes (2)
    · last offset delta (4) · base timestamp (8) · max timestamp (8) · producer id (8) · producer epoch (2)
    · base sequence (4) · number of records (4)

Big-endian. The CRC-32C covers everything from the attributes to the end of the batch, so a broker may set the fields
before those. Source: ``org.apache.kafka.common.record.DefaultRecordBatch``.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from mypy_extensions import i16, i32, i64, u8

from aioproducer.records.compression import CompressionType
from aioproducer.records.crc32c import crc32c

if TYPE_CHECKING:
    # Compiled code reaches these through librt's C interface; interpreted code never uses them (see record_writer.py).
    from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be

BATCH_OVERHEAD: Final = 61
"""Bytes of a batch beside its records."""

LOG_OVERHEAD: Final = 12
"""Bytes of base offset and length, which the length does not count."""

MAGIC: Final = 2
"""Kafka's record format v2, the only one since Kafka 4.0; clients have written no other since 0.11."""

MAGIC_OFFSET: Final = 16
ATTRIBUTES_OFFSET: Final = 21

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

MAX_SEQUENCE: Final = 2**31 - 1

_SMALL: Final = 4096

HEADER: Final = Struct(">qiibIhiqqqhii")
OUTSIDE_CRC: Final = Struct(">qiibI")
INSIDE_CRC: Final = Struct(">hiqqqhii")

_UNCOMPRESSED: Final = CompressionType.NONE  # looking an enum member up is slow


def increment_sequence(sequence: int, by: int) -> int:
    """``sequence + by``; after 2³¹-1 comes 0."""
    return (sequence + by) & MAX_SEQUENCE


def decrement_sequence(sequence: int, by: int) -> int:
    """``sequence - by``; before 0 comes 2³¹-1."""
    return (sequence - by) & MAX_SEQUENCE


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
