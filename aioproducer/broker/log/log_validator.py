"""Validates a batch before it is appended.

The rules are those of ``ProduceRequest.validateRecords``, ``UnifiedLog.analyzeAndValidateRecords`` and ``LogValidator``
of Apache Kafka 4.3 for batches of clients: one complete batch of format v2 with the right CRC, offsets that count from
0, as many records as its header says, and no control batch.

Every record is read (and decompressed, if the library of the codec is installed), because garbage inside a batch would
stop every reader of the partition. As in Kafka the timestamps of the records count, not that of the header; a record
whose timestamp is -1 has none. Records that are refused for their timestamp or for a missing key are named (KIP-467).
Two rules are stricter than Kafka's. The offsets of uncompressed records must count up, too. The attributes of records,
which have no meaning, must be 0, because some clients cannot read others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.log.appended_batch import with_records
from aioproducer.broker.log.producer_state import NO_PRODUCER_ID
from aioproducer.broker.log.record_walk import MAX_DELTA, RecordWalk
from aioproducer.configs.config_def import LONG_MAX
from aioproducer.errors import (
    ConfigException,
    CorruptRecordException,
    InvalidRecordException,
    InvalidTimestampException,
    RecordBatchTooLargeException,
    RecordTooLargeException,
    UnsupportedCompressionTypeException,
)
from aioproducer.protocol.primitives import Buffer
from aioproducer.protocol.schema import Records
from aioproducer.records.batch_layout import (
    ATTRIBUTES_OFFSET,
    BATCH_OVERHEAD,
    CODEC_MASK,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_OFFSET,
)
from aioproducer.records.compression import (
    CompressionType,
    DecompressedTooLargeException,
    check_codec,
    compress,
    decompress,
)
from aioproducer.records.crc32c import crc32c
from aioproducer.records.record_batch import RecordBatch, read_batches
from aioproducer.types import TimestampType

MAX_DECOMPRESSED_SIZE = 128 * 1024 * 1024
"""Bytes that a decompressed batch may have. Kafka has no such limit; here the whole batch is decompressed at once."""

ZSTD_MIN_PRODUCE_VERSION = 7

NO_TIMESTAMP = -1

_LENGTH_AT = 8

_RECORDS_AT_ONCE = 20_000
"""How many records are read before other threads may run."""


def batch_of_request(records: Records, produce_version: int) -> RecordBatch:
    """The batch that a produce request has for a partition.

    Raises :class:`InvalidRecordException` unless it is exactly one, :class:`UnsupportedCompressionTypeException` for a
    codec that this version of the API does not have.
    """
    if not isinstance(records, (bytes, bytearray, memoryview)) or len(records) <= MAGIC_OFFSET:
        raise InvalidRecordException("a produce request must have a record batch for each of its partitions")
    if records[MAGIC_OFFSET] != MAGIC:
        error = InvalidRecordException if records[MAGIC_OFFSET] < MAGIC else CorruptRecordException
        raise error(f"record batches must be of format v{MAGIC}, not v{records[MAGIC_OFFSET]}")
    if int.from_bytes(records[_LENGTH_AT:LOG_OVERHEAD], "big") + LOG_OVERHEAD == len(records):
        batch = RecordBatch(records)
    else:
        batch = _first_of(records)
    is_packed = batch.attributes & CODEC_MASK
    if is_packed and batch.codec is CompressionType.ZSTD and produce_version < ZSTD_MIN_PRODUCE_VERSION:
        raise UnsupportedCompressionTypeException(
            f"zstd needs Produce {ZSTD_MIN_PRODUCE_VERSION}, not {produce_version}"
        )
    return batch


def _first_of(records: Buffer) -> RecordBatch:
    """The one complete batch. An incomplete rest is ignored, as in Kafka."""
    batches = read_batches(records, allow_partial=True)
    batch = next(batches, None)
    if batch is None:
        raise InvalidRecordException("the record batch is not complete")
    if next(batches, None) is not None:
        raise InvalidRecordException(
            "a produce request must have one record batch for each of its partitions, not more"
        )
    return batch


class Scan(NamedTuple):
    """What reading all of a batch has found; this takes time in proportion to its size."""

    crc: int
    max_timestamp: int
    """The largest timestamp of the records; -1 if none has one."""
    min_timestamp: int
    """The smallest timestamp of the records; larger than any timestamp if none has one."""
    decompressed: int
    """Bytes of the decompressed records; 0 if the batch is not compressed."""
    problem: str = ""
    """What is wrong with the records, as a text: the traceback of an exception would keep the request in memory."""
    keyless: Sequence[int] = ()
    """The first records without a key."""
    misdated: Sequence[int] = ()
    """The first records whose timestamps the topic did not allow when they were read."""
    recompressed: bytearray | None = None
    """The batch compressed with its topic's codec, if that differs."""


class Codec(NamedTuple):
    """A codec and its compression level."""

    type: CompressionType
    level: int | None


class Wanted(NamedTuple):
    """What a topic wants of a batch."""

    codec: Codec | None
    """The codec to compress the batch anew with; None keeps the batch as it is."""
    earliest: int
    latest: int
    """The timestamps, in ms, between which those of the records must be."""


def wanted_of(batch: RecordBatch, config: TopicConfig, now_ms: int) -> Wanted:
    """What a topic with this config wants of the batch now."""
    codec = config.codec
    same = codec is None or codec == batch.attributes & CODEC_MASK
    anew = None if same or codec is None else Codec(codec, config.compression_level)
    if config.message_timestamp_type == "LogAppendTime":
        return Wanted(anew, -LONG_MAX - 1, LONG_MAX)
    latest = min(now_ms + config.message_timestamp_after_max_ms, LONG_MAX)
    return Wanted(anew, now_ms - config.message_timestamp_before_max_ms, latest)


def scan(batch: RecordBatch, max_decompressed: int = MAX_DECOMPRESSED_SIZE, wanted: Wanted | None = None) -> Scan:
    """Reads all of a batch, and compresses it anew if that is ``wanted``. It touches nothing else, so any thread may
    call it.

    Raises :class:`DecompressedTooLargeException` if the batch exceeds a ``max_decompressed`` below the general limit.
    """
    data = bytes(memoryview(batch.data)[ATTRIBUTES_OFFSET:])  # both the CRC and the walk over records want bytes
    crc = crc32c(data)
    start, decompressed = BATCH_OVERHEAD - ATTRIBUTES_OFFSET, 0
    if crc != batch.crc:
        return _unread(batch, crc)
    if batch.attributes & CODEC_MASK:
        codec = batch.codec
        try:
            check_codec(codec)
        except ConfigException:  # Without the library the records cannot be checked.
            return _unread(batch, crc)
        try:
            data, start = decompress(codec, data[start:], min(max_decompressed, MAX_DECOMPRESSED_SIZE)), 0
        except CorruptRecordException as error:
            if isinstance(error, DecompressedTooLargeException) and max_decompressed < MAX_DECOMPRESSED_SIZE:
                raise
            return _unread(batch, crc, problem=f"the records cannot be decompressed: {error}")
        decompressed = len(data)
    base = batch.base_timestamp
    least, most = -MAX_DELTA, MAX_DELTA
    if wanted is not None:
        least, most = (min(max(limit - base, -MAX_DELTA), MAX_DELTA) for limit in (wanted.earliest, wanted.latest))
    walk = RecordWalk(data, start, batch.count, NO_TIMESTAMP - base, least=least, most=most)
    while not walk.advance(_RECORDS_AT_ONCE):
        pass
    if walk.problem:
        text = f"the batch does not have the {batch.count} records it says: {walk.problem}"
        return _unread(batch, crc, decompressed, text)
    newest = max(base + walk.max_timestamp_delta, NO_TIMESTAMP)
    recompressed = None
    if wanted is not None and (anew := wanted.codec) is not None:
        records = compress(anew.type, data[start:], anew.level)
        recompressed = with_records(batch.data, anew.type, records)
    oldest = base + walk.min_timestamp_delta
    return Scan(crc, newest, oldest, decompressed, "", walk.keyless, walk.misdated, recompressed)


def _unread(batch: RecordBatch, crc: int, decompressed: int = 0, problem: str = "") -> Scan:
    """The result for a batch whose records were not all read."""
    return Scan(crc, batch.max_timestamp, LONG_MAX, decompressed, problem)


def validate(batch: RecordBatch, config: TopicConfig, now_ms: int, scanned: Scan | None = None) -> Scan:
    """Checks that the batch may be appended to a log with this config. Raises an exception with the code that Kafka
    answers. ``scanned`` is the result of :func:`scan`, if the batch was scanned before. Returns that result.
    """
    if batch.base_offset != 0:
        raise InvalidRecordException(f"the base offset of a batch to append must be 0, not {batch.base_offset}")
    _check_size(batch.size_in_bytes, config)
    found = scan(batch, wanted=wanted_of(batch, config, now_ms)) if scanned is None else scanned
    if found.crc != batch.crc:
        raise CorruptRecordException(f"the batch says its CRC is {batch.crc:#010x}, it is {found.crc:#010x}")
    if batch.size_in_bytes > config.segment_bytes:
        raise RecordBatchTooLargeException(
            f"the batch has {batch.size_in_bytes} bytes, more than segment.bytes={config.segment_bytes}"
        )
    if batch.count <= 0 or batch.last_offset_delta + 1 != batch.count:
        raise InvalidRecordException(
            f"the batch says it has {batch.count} records and that its last offset delta is {batch.last_offset_delta}"
        )
    if batch.is_control:
        raise InvalidRecordException("clients may not write control batches")
    if batch.producer_id > NO_PRODUCER_ID and batch.base_sequence < 0:
        raise InvalidRecordException(
            f"the batch has producer id {batch.producer_id} and no sequence, but {batch.base_sequence}"
        )
    if batch.is_transactional and batch.producer_id <= NO_PRODUCER_ID:
        raise InvalidRecordException("the batch is part of a transaction and has no producer id")
    if found.problem:
        raise InvalidRecordException(found.problem)
    _validate_timestamps(batch, found, config, now_ms)
    if found.keyless and "compact" in config.cleanup_policy:
        error = InvalidRecordException(f"record {found.keyless[0]} has no key, which a compacted topic needs")
        error.refused_records = dict.fromkeys(found.keyless, "the record has no key, which a compacted topic needs")
        raise error
    if found.recompressed is not None:
        _check_size(len(found.recompressed), config)
    return found


def _check_size(size: int, config: TopicConfig) -> None:
    if size > config.max_message_bytes:
        raise RecordTooLargeException(
            f"the batch has {size} bytes, more than max.message.bytes={config.max_message_bytes}"
        )


def _validate_timestamps(batch: RecordBatch, found: Scan, config: TopicConfig, now_ms: int) -> None:
    if config.message_timestamp_type == "LogAppendTime":
        if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            raise InvalidTimestampException("a producer may not set the timestamp type to LogAppendTime")
        return
    if now_ms - found.min_timestamp > config.message_timestamp_before_max_ms:
        problem = (
            f"timestamp {found.min_timestamp} is more than {config.message_timestamp_before_max_ms} ms "
            "(message.timestamp.before.max.ms) in the past"
        )
    elif found.max_timestamp > LONG_MAX or found.max_timestamp - now_ms > config.message_timestamp_after_max_ms:
        problem = (
            f"timestamp {found.max_timestamp} is more than {config.message_timestamp_after_max_ms} ms "
            "(message.timestamp.after.max.ms) in the future"
        )
    else:
        return
    error = InvalidTimestampException(problem)
    _, earliest, latest = wanted_of(batch, config, now_ms)
    text = f"the record's timestamp is out of range; it must be {earliest} to {latest}"
    error.refused_records = dict.fromkeys(found.misdated, text)
    raise error
