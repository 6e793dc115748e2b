"""A record batch as it is in a log or in a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aioproducer.errors import CorruptRecordException
from aioproducer.records.batch_columns import BatchColumns
from aioproducer.records.batch_layout import (
    ATTRIBUTES_OFFSET,
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_OFFSET,
    TRANSACTIONAL,
)
from aioproducer.records.compression import CompressionType, decompress
from aioproducer.records.crc32c import crc32c
from aioproducer.records.record import Record
from aioproducer.records.record_reader import read_records
from aioproducer.types import TimestampType

DEFAULT_MAX_SIZE: Final = 128 * 1024 * 1024
"""The default limit on a batch's decompressed size, in bytes."""

_MIN_RECORD_SIZE: Final = 7


class RecordBatch:
    """A view over the bytes of one whole batch: its header as attributes, its records when asked for.

    The constructor reads the header and checks the length and the format; ``verify`` checks the rest. The attributes do
    not follow later changes of ``data``.
    """

    data: bytes | bytearray | memoryview
    """The whole batch."""
    size_in_bytes: int
    base_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    """Milliseconds since the epoch; the base of the records' timestamps; see also ``delete_horizon_ms``."""
    max_timestamp: int
    """The latest of the records' timestamps, or the broker's, as ``timestamp_type`` says."""
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "count",
        "crc",
        "data",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "size_in_bytes",
    )

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        size = len(data)
        if size > MAGIC_OFFSET:
            check_magic(data[MAGIC_OFFSET])
        if size < BATCH_OVERHEAD:
            raise CorruptRecordException(f"{size} bytes are no record batch, the header alone takes {BATCH_OVERHEAD}")
        self.data = data
        self.size_in_bytes = size
        (
            self.base_offset,
            length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = HEADER.unpack_from(data)
        if length + LOG_OVERHEAD != size:
            raise CorruptRecordException(
                f"batch at offset {self.base_offset} says it has {length + LOG_OVERHEAD} bytes and has {size}"
            )

    @property
    def codec(self) -> CompressionType:
        """How the records are compressed; CorruptRecordException for a number that Kafka does not define."""
        return _codec(self.base_offset, self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        """The source of the timestamps: each record's own, from the producer, or the broker's ``max_timestamp``."""
        return TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether it is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether it holds a broker's marker (commit, abort) instead of users' records."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When its tombstones may be removed (KIP-534); stored in place of the base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def last_offset(self) -> int:
        """The offset of its last record, or of the last it once had (a compacted log)."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last record: after 2^31 - 1 comes 0. -1 if it has none."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFF_FFFF

    def verify(self) -> None:
        """Checks the CRC, the codec and, as far as possible without reading records, their number.

        Raises CorruptRecordException.
        """
        actual = crc32c(memoryview(self.data)[ATTRIBUTES_OFFSET:])
        if actual != self.crc:
            raise wrong_crc(self.base_offset, actual, self.crc)
        check_count(self.base_offset, self.size_in_bytes, self.attributes, self.last_offset_delta, self.count)

    def records(self, *, max_size: int = DEFAULT_MAX_SIZE) -> Iterator[Record]:
        """Its records, read one by one; those of a control batch are markers.

        Raises CorruptRecordException, maybe after some records, if they contradict the header or would take more than
        ``max_size`` bytes decompressed; ConfigException if the codec's library is not installed. Does not check the
        CRC.
        """
        return read_records(
            self._body(max_size),
            count=self.count,
            base_offset=self.base_offset,
            last_offset_delta=self.last_offset_delta,
            base_timestamp=self.base_timestamp,
            log_append_time=self._log_append_time,
        )

    def append_to(self, columns: BatchColumns, begin: int, end: int, *, max_size: int = DEFAULT_MAX_SIZE) -> int:
        """Adds its records with offsets from ``begin`` to before ``end``; returns how many. Raises as :meth:`records`;
        after an error nothing was added.
        """
        return columns.append(
            self._body(max_size),
            self.count,
            self.base_offset,
            self.last_offset_delta,
            self.base_timestamp,
            self._log_append_time,
            begin,
            end,
        )

    @property
    def _log_append_time(self) -> int | None:
        return self.max_timestamp if self.attributes & LOG_APPEND_TIME else None

    def _body(self, max_size: int) -> bytes:
        """The records' bytes, decompressed."""
        codec = self.codec
        if self.count < 0:
            raise CorruptRecordException(f"batch at offset {self.base_offset} says it has {self.count} records")
        body = bytes(memoryview(self.data)[BATCH_OVERHEAD:])
        if body and codec is not CompressionType.NONE:
            return decompress(codec, body, max_size)
        return body

    def __repr__(self) -> str:
        return (
            f"RecordBatch(offsets={self.base_offset}..{self.last_offset}, count={self.count}, "
            f"size_in_bytes={self.size_in_bytes}, attributes={self.attributes:#x}, producer_id={self.producer_id}, "
            f"producer_epoch={self.producer_epoch}, sequences={self.base_sequence}..{self.last_sequence})"
        )


def read_batches(data: bytes | bytearray | memoryview, *, allow_partial: bool = False) -> Iterator[RecordBatch]:
    """The batches in ``data``, as views into it; they are not verified.

    A broker cuts a fetch response at a number of bytes, not between batches: with ``allow_partial`` an incomplete batch
    ends the iteration. Raises CorruptRecordException.
    """
    view = memoryview(data)
    start, end = 0, len(view)
    while start < end:
        left = end - start
        size = LOG_OVERHEAD + int.from_bytes(view[start + 8 : start + LOG_OVERHEAD], "big", signed=True)
        if left > MAGIC_OFFSET:
            check_magic(view[start + MAGIC_OFFSET])
        if left >= LOG_OVERHEAD and size < BATCH_OVERHEAD:
            raise CorruptRecordException(f"a batch says it has {size} bytes, the header alone takes {BATCH_OVERHEAD}")
        if left < LOG_OVERHEAD or left < size:
            if allow_partial:
                return
            raise CorruptRecordException(f"a batch ends early: {left} bytes left of {max(size, BATCH_OVERHEAD)}")
        yield RecordBatch(view[start : start + size])
        start += size


def _codec(base_offset: int, attributes: int) -> CompressionType:
    try:
        return CompressionType(attributes & CODEC_MASK)
    except ValueError:
        raise CorruptRecordException(
            f"batch at offset {base_offset}: unknown compression {attributes & CODEC_MASK}"
        ) from None


def check_count(base_offset: int, size: int, attributes: int, last_offset_delta: int, count: int) -> None:
    """Raises CorruptRecordException if a batch of these fields and bytes has an unknown codec or cannot have this
    number of records."""
    compressed = _codec(base_offset, attributes) is not CompressionType.NONE
    room = last_offset_delta + 1
    if not compressed:
        room = min(room, (size - BATCH_OVERHEAD) // _MIN_RECORD_SIZE)
    if not 0 <= count <= room:
        raise CorruptRecordException(
            f"batch at offset {base_offset}: {count} records cannot be in "
            f"{size - BATCH_OVERHEAD} bytes with a last offset delta of {last_offset_delta}"
        )


def wrong_crc(base_offset: int, actual: int, crc: int) -> CorruptRecordException:
    return CorruptRecordException(f"batch at offset {base_offset}: its CRC is {actual:#010x}, it says {crc:#010x}")


def check_magic(magic: int) -> None:
    if magic == MAGIC:
        return
    if magic in (0, 1):
        raise CorruptRecordException(
            f"messages of format v{magic} (before Kafka 0.11) are not supported, only record batches of format v{MAGIC}"
        )
    raise CorruptRecordException(f"no record batch: its format (magic) is {magic}, not {MAGIC}")
