"""The 61 bytes in front of a batch's records.

    base offset (8) · length of what follows (4) · partition leader epoch (4) · magic (1) · CRC (4) · attributes (2)
    · last offset delta (4) · base timestamp (8) · max timestamp (8) · producer id (8) · producer epoch (2)
    · base sequence (4) · number of records (4)

Big-endian. The CRC-32C covers everything from the attributes to the end of the batch, so a broker may set what stands
before it. Source: ``org.apache.kafka.common.record.DefaultRecordBatch``.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from aioproducer.records.compression import CompressionType
from aioproducer.records.crc32c import crc32c

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

HEADER: Final = Struct(">qiibIhiqqqhii")
OUTSIDE_CRC: Final = Struct(">qiibI")
INSIDE_CRC: Final = Struct(">hiqqqhii")


def encode_batch_header(
    body: bytes,
    *,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    codec: CompressionType = CompressionType.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    log_append_time: bool = False,
    control: bool = False,
) -> bytes:
    """The header for ``body``, which holds ``count`` records with offset deltas 0, 1, 2, …

    ``body`` is as it will be sent: compressed already if ``codec`` says so. Timestamps are in milliseconds since the
    epoch. The two are not joined, so that they can be written out as they are.
    """
    attributes = int(codec)
    if log_append_time:
        attributes |= LOG_APPEND_TIME
    if transactional:
        attributes |= TRANSACTIONAL
    if control:
        attributes |= CONTROL
    inside = INSIDE_CRC.pack(
        attributes, count - 1, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count
    )
    length = BATCH_OVERHEAD - LOG_OVERHEAD + len(body)
    return OUTSIDE_CRC.pack(base_offset, length, partition_leader_epoch, MAGIC, crc32c(inside, body)) + inside
