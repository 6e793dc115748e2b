"""The fields that a broker writes into a batch when it appends it to a log."""

from __future__ import annotations

from struct import Struct, pack_into, unpack_from

from aioproducer.records.batch_layout import (
    ATTRIBUTES_OFFSET,
    BATCH_OVERHEAD,
    CODEC_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_OFFSET,
)
from aioproducer.records.crc32c import crc32c
from aioproducer.records.record_batch_header import encode_batch_header

_LENGTH_OFFSET = 8
_LEADER_EPOCH_OFFSET = 12
_CRC_OFFSET = MAGIC_OFFSET + 1
_LAST_OFFSET_DELTA_OFFSET = 23
_MAX_TIMESTAMP_OFFSET = 35
_INT64 = Struct(">q")


def set_base_offset(batch: bytearray, base_offset: int, partition_leader_epoch: int) -> None:
    """Gives a whole batch its place in the log. The CRC does not cover these fields and stays right."""
    _INT64.pack_into(batch, 0, base_offset)
    pack_into(">i", batch, _LEADER_EPOCH_OFFSET, partition_leader_epoch)


def set_place(batch: bytearray, base_offset: int) -> None:
    """Restores these fields in a batch that may have lost them, also its length and its format, which the CRC does not
    cover either. The leader epoch stays."""
    pack_into(">qi", batch, 0, base_offset, len(batch) - LOG_OVERHEAD)
    batch[MAGIC_OFFSET] = MAGIC


def empty_batch(base_offset: int, offsets: int, partition_leader_epoch: int) -> bytearray:
    """A batch with this many offsets and no record, as Kafka's log cleaner leaves them."""
    batch = bytearray(encode_batch_header(b"", count=0, base_timestamp=-1, max_timestamp=-1))
    pack_into(">i", batch, _LAST_OFFSET_DELTA_OFFSET, offsets - 1)
    set_base_offset(batch, base_offset, partition_leader_epoch)
    set_max_timestamp(batch, -1)
    return batch


def set_log_append_time(batch: bytearray, timestamp_ms: int) -> None:
    """Makes ``timestamp_ms`` the time of all records of a whole batch (``message.timestamp.type=LogAppendTime``).

    The records stay unchanged; the attributes and the CRC change.
    """
    (attributes,) = unpack_from(">h", batch, ATTRIBUTES_OFFSET)
    pack_into(">h", batch, ATTRIBUTES_OFFSET, attributes | LOG_APPEND_TIME)
    set_max_timestamp(batch, timestamp_ms)


def set_max_timestamp(batch: bytearray, timestamp_ms: int) -> None:
    """Writes the largest timestamp into the header of a whole batch, and updates the CRC."""
    _INT64.pack_into(batch, _MAX_TIMESTAMP_OFFSET, timestamp_ms)
    with memoryview(batch) as view:
        pack_into(">I", batch, _CRC_OFFSET, crc32c(view[ATTRIBUTES_OFFSET:]))


def with_records(batch: bytes | bytearray | memoryview, codec: int, records: bytes) -> bytearray:
    """The same batch in another codec: ``records`` are its records, compressed by that codec."""
    header = bytearray(batch[:BATCH_OVERHEAD])
    (attributes,) = unpack_from(">h", header, ATTRIBUTES_OFFSET)
    pack_into(">h", header, ATTRIBUTES_OFFSET, attributes & ~CODEC_MASK | codec)
    pack_into(">i", header, _LENGTH_OFFSET, BATCH_OVERHEAD - LOG_OVERHEAD + len(records))
    changed = header + records
    with memoryview(changed) as view:
        pack_into(">I", changed, _CRC_OFFSET, crc32c(view[ATTRIBUTES_OFFSET:]))
    return changed
