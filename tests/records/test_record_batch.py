"""Whole batches: header and records together, and everything that can be wrong with them."""

from __future__ import annotations

import gzip
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioproducer.errors import CorruptRecordException
from aioproducer.records.compression import CompressionType, compress
from aioproducer.records.crc32c import crc32c
from aioproducer.records.record import Record
from aioproducer.records.record_batch import RecordBatch, read_batches
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter
from aioproducer.types import TimestampType

# Written by Kafka 4.3.1's MemoryRecordsBuilder.
BY_KAFKA = bytes.fromhex(
    "000000000000002a000000880000000902a4f86a3f0000000000020000018bcfe568000000018bcfe568640000000000000fa00001000000"
    "4d000000032c000000066b65790a76616c7565040268027804c3a9016e00e70702016076616c75652076616c75652076616c75652076616c"
    "75652076616c75652076616c75652076616c75652076616c756520000e00c80104000100"
)
RECORDS_BY_KAFKA = [
    Record(42, 1_700_000_000_000, b"key", b"value", (("h", b"x"), ("é", None))),
    Record(43, 1_699_999_999_500, None, b"value " * 8, ()),
    Record(44, 1_700_000_000_100, b"", None, ()),
]

headers = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=3)
records = st.lists(
    st.tuples(st.integers(-(2**61), 2**61), st.none() | st.binary(), st.none() | st.binary(max_size=300), headers),
    min_size=1,
    max_size=6,
)


def make(records: list[Any], codec: CompressionType = CompressionType.NONE, **header: Any) -> bytes:
    writer = RecordWriter()
    base_timestamp = records[0][0]
    for index, (timestamp, *rest) in enumerate(records):
        writer.append(index, timestamp - base_timestamp, *rest)
    body = compress(codec, writer.freeze())
    header = {
        "count": len(records),
        "base_timestamp": base_timestamp,
        "max_timestamp": max(record[0] for record in records),
        **header,
    }
    return encode_batch_header(body, codec=codec, **header) + body


def repaired(batch: bytearray) -> bytes:
    """With the CRC and the length made right again, so that what is wrong in it is seen by other checks."""
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
    return bytes(batch)


def consume(data: bytes, **options: Any) -> int:
    total = 0
    for batch in read_batches(data, **options):
        batch.verify()
        assert repr(batch)
        total += len(list(batch.records(max_size=100_000)))
    return total


TEN: list[Any] = [(1000 + index, b"key %d" % index, b"value", []) for index in range(10)]


@pytest.mark.parametrize("as_type", [bytes, bytearray, memoryview])
def test_reads_kafkas_batch(as_type: Any) -> None:
    (batch,) = read_batches(as_type(BY_KAFKA))
    batch.verify()
    assert batch.base_offset == 42
    assert batch.last_offset_delta == 2
    assert batch.last_offset == 44
    assert batch.partition_leader_epoch == 9
    assert batch.magic == 2
    assert batch.crc == 0xA4F86A3F
    assert batch.attributes == 0
    assert batch.codec is CompressionType.NONE
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    assert not batch.is_transactional
    assert not batch.is_control
    assert batch.delete_horizon_ms is None
    assert batch.base_timestamp == 1_700_000_000_000
    assert batch.max_timestamp == 1_700_000_000_100
    assert (batch.producer_id, batch.producer_epoch) == (4000, 1)
    assert (batch.base_sequence, batch.last_sequence) == (77, 79)
    assert batch.count == 3
    assert batch.size_in_bytes == len(BY_KAFKA)
    assert list(batch.records()) == RECORDS_BY_KAFKA
    assert list(batch.records()) == RECORDS_BY_KAFKA
    assert RecordBatch(as_type(BY_KAFKA)).crc == batch.crc


def test_writes_kafkas_batch() -> None:
    batch = make(
        [(record.timestamp_ms, record.key, record.value, record.headers) for record in RECORDS_BY_KAFKA],
        base_offset=42, partition_leader_epoch=9, producer_id=4000, producer_epoch=1, base_sequence=77,
    )  # fmt: skip
    assert batch == BY_KAFKA


@pytest.mark.parametrize("codec", CompressionType)
@settings(max_examples=40)
@given(batches=st.lists(records, max_size=3), base_offset=st.integers(0, 2**62))
def test_round_trip(codec: CompressionType, batches: list[Any], base_offset: int) -> None:
    data = b"".join(make(records, codec, base_offset=base_offset) for records in batches)
    found = []
    for batch in read_batches(data):
        batch.verify()
        assert batch.codec is codec
        found.append(list(batch.records()))
    assert found == [
        [
            Record(base_offset + index, timestamp, key, value, tuple(headers))
            for index, (timestamp, key, value, headers) in enumerate(records)
        ]
        for records in batches
    ]


@pytest.mark.parametrize("codec", CompressionType)
@pytest.mark.parametrize("repair", [False, True])
@settings(max_examples=120)
@given(data=st.data())
def test_mutations_raise_one_error(codec: CompressionType, repair: bool, data: st.DataObject) -> None:
    batch = bytearray(make(TEN, codec))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(batch) - 1))
        match data.draw(st.sampled_from(["change", "change", "insert", "delete", "cut"])):
            case "change":
                batch[place] = data.draw(st.integers(0, 255))
            case "insert":
                batch[place:place] = data.draw(st.binary(max_size=12))
            case "delete" if len(batch) > 1:
                del batch[place]
            case "cut" if place:
                del batch[place:]
    broken = repaired(batch) if repair and len(batch) > 21 else bytes(batch)
    for allow_partial in (False, True):
        with suppress(CorruptRecordException):
            consume(broken, allow_partial=allow_partial)


@given(data=st.binary(max_size=100), allow_partial=st.booleans())
def test_any_bytes_raise_one_error(data: bytes, allow_partial: bool) -> None:
    with suppress(CorruptRecordException):
        consume(data, allow_partial=allow_partial)


def test_every_changed_byte_is_noticed_by_the_crc() -> None:
    for place in range(17, len(BY_KAFKA)):
        broken = bytearray(BY_KAFKA)
        broken[place] ^= 0x10
        with pytest.raises(CorruptRecordException, match="its CRC is 0x"):
            RecordBatch(broken).verify()


def test_partial_batches() -> None:
    whole = make(TEN) + make(TEN, base_offset=10)
    size = len(whole) // 2
    for end in range(len(whole)):
        cut = whole[:end]
        found = [batch.base_offset for batch in read_batches(cut, allow_partial=True)]
        assert found == [0][: end // size]
        if end not in (0, size):
            with pytest.raises(CorruptRecordException, match="a batch ends early"):
                list(read_batches(cut))
            with pytest.raises(CorruptRecordException):
                RecordBatch(cut)


@pytest.mark.parametrize("size", [-(2**31), -12, -1, 0, 48])
def test_impossible_lengths(size: int) -> None:
    batch = bytearray(make(TEN))
    batch[8:12] = size.to_bytes(4, "big", signed=True)
    for allow_partial in (False, True):
        with pytest.raises(CorruptRecordException, match=f"says it has {size + 12} bytes"):
            list(read_batches(batch, allow_partial=allow_partial))
    with pytest.raises(CorruptRecordException, match=f"says it has {size + 12} bytes and has {len(batch)}"):
        RecordBatch(batch)


def test_a_length_beyond_the_data_is_not_believed() -> None:
    batch = bytearray(make(TEN))
    batch[8:12] = (2**31 - 1).to_bytes(4, "big")
    assert list(read_batches(batch, allow_partial=True)) == []
    with pytest.raises(CorruptRecordException, match=f"a batch ends early: {len(batch)} bytes left of 2147483659"):
        list(read_batches(batch))


@pytest.mark.parametrize(
    ("magic", "message"),
    [(0, "format v0 .* are not supported"), (1, "format v1 .* are not supported"), (3, "is 3, not 2")],
)
def test_a_batch_of_another_format_is_refused(magic: int, message: str) -> None:
    batch = bytearray(make(TEN))
    batch[16] = magic
    with pytest.raises(CorruptRecordException, match=message):
        list(read_batches(batch))
    with pytest.raises(CorruptRecordException, match=message):
        RecordBatch(batch)
    old_message = bytes(8) + (14).to_bytes(4, "big") + bytes(4) + bytes([magic]) + bytes(9)  # shorter than a header
    with pytest.raises(CorruptRecordException, match=message):
        list(read_batches(old_message))


@pytest.mark.parametrize("count", [-1, -(2**31), 11, 2**31 - 1])
def test_a_count_that_cannot_be(count: int) -> None:
    batch = bytearray(make(TEN))
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    view = RecordBatch(repaired(batch))
    with pytest.raises(CorruptRecordException, match=f"{count} records cannot be in"):
        view.verify()
    with pytest.raises(CorruptRecordException):
        list(view.records())


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
@pytest.mark.parametrize(
    ("count", "message"), [(9, "17 bytes follow the last of 9"), (0, "bytes follow the last of 0")]
)
def test_fewer_records_than_there_are(codec: CompressionType, count: int, message: str) -> None:
    batch = bytearray(make(TEN, codec))
    batch[57:61] = count.to_bytes(4, "big")
    view = RecordBatch(repaired(batch))
    view.verify()
    with pytest.raises(CorruptRecordException, match=message):
        list(view.records())


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec(codec: int) -> None:
    batch = bytearray(make(TEN))
    batch[22] = codec
    view = RecordBatch(repaired(batch))
    for use in (view.verify, view.records, lambda: view.codec):
        with pytest.raises(CorruptRecordException, match=f"unknown compression {codec}"):
            use()


def test_flags() -> None:
    batch = RecordBatch(make(TEN, transactional=True, control=True, log_append_time=True, max_timestamp=7))
    assert batch.is_transactional
    assert batch.is_control
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp_ms for record in batch.records()] == [7] * 10


def test_delete_horizon() -> None:
    batch = bytearray(make(TEN))
    batch[22] |= 0x40
    assert RecordBatch(batch).delete_horizon_ms == 1000


def test_sequences_wrap_to_zero() -> None:
    assert RecordBatch(make(TEN, base_sequence=2**31 - 10)).last_sequence == 2**31 - 1
    assert RecordBatch(make(TEN, base_sequence=2**31 - 9)).last_sequence == 0
    assert RecordBatch(make(TEN)).last_sequence == -1


def test_a_batch_that_compaction_emptied() -> None:
    header = bytearray(encode_batch_header(b"", count=0, base_timestamp=-1, max_timestamp=5, base_sequence=3))
    header[23:27] = (4).to_bytes(4, "big")  # it keeps its last offset and sequence
    batch = RecordBatch(repaired(header))
    batch.verify()
    assert (batch.count, batch.last_offset, batch.last_sequence) == (0, 4, 7)
    assert list(batch.records()) == []


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec is not CompressionType.NONE], ids=str)
def test_bombs_are_bounded(codec: CompressionType) -> None:
    batch = RecordBatch(make([(0, None, bytes(5_000_000), [])], codec))
    assert batch.size_in_bytes < 300_000
    batch.verify()
    with pytest.raises(CorruptRecordException, match="takes more than the 1000000 bytes"):
        batch.records(max_size=1_000_000)
    assert len(list(batch.records(max_size=5_000_100))) == 1


def test_a_body_that_is_not_what_the_codec_says() -> None:
    body = gzip.compress(b"no records")
    header = encode_batch_header(body, count=1, base_timestamp=0, max_timestamp=0, codec=CompressionType.ZSTD)
    with pytest.raises(CorruptRecordException, match="broken zstd data"):
        RecordBatch(header + body).records()
    header = encode_batch_header(body, count=1, base_timestamp=0, max_timestamp=0, codec=CompressionType.GZIP)
    with pytest.raises(CorruptRecordException, match="record 0 of 1"):
        list(RecordBatch(header + body).records())


def test_batches_are_views() -> None:
    data = make(TEN) + make(TEN)
    first, second = read_batches(data)
    assert isinstance(second.data, memoryview)
    assert second.data.obj is data
    assert bytes(first.data) == data[: first.size_in_bytes]
