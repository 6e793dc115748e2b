"""The layout of the 61 bytes in front of a batch's records.

    base offset (8) · length of what follows (4) · partition leader epoch (4) · magic (1) · CRC (4) · attributes (2)
    · last offset delta (4) · base timestamp (8) · max timestamp (8) · producer id (8) · producer epoch (2)
    · base sequence (4) · number of records (4)

Big-endian. The CRC-32C covers everything from the attributes to the end of the batch, so a broker may set the fields
before those. Source: ``org.apache.kafka.common.record.DefaultRecordBatch``.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

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

HEADER: Final = Struct(">qiibIhiqqqhii")
OUTSIDE_CRC: Final = Struct(">qiibI")
INSIDE_CRC: Final = Struct(">hiqqqhii")


def increment_sequence(sequence: int, by: int) -> int:
    """``sequence + by``; after 2³¹-1 comes 0."""
    return (sequence + by) & MAX_SEQUENCE


def decrement_sequence(sequence: int, by: int) -> int:
    """``sequence - by``; before 0 comes 2³¹-1."""
    return (sequence - by) & MAX_SEQUENCE
