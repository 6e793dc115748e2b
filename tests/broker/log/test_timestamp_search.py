from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.log.appended_batch import set_base_offset
from aioproducer.broker.log.timestamp_search import TimestampAndOffset, TimestampSearch
from aioproducer.errors import CorruptRecordException
from aioproducer.records.compression import CompressionType, compress
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter

BASE_OFFSET = 100


def make(timestamps: list[int], codec: CompressionType = CompressionType.NONE, *, stamped: bool = False) -> RecordBatch:
    writer = RecordWriter()
    for index, timestamp in enumerate(timestamps):
        writer.append(index, timestamp - timestamps[0], None, b"x", None)
    body = compress(codec, writer.freeze())
    header = encode_batch_header(
        body,
        count=len(timestamps),
        base_timestamp=timestamps[0],
        max_timestamp=max(timestamps),
        codec=codec,
        log_append_time=stamped,
    )
    data = bytearray(header + body)
    set_base_offset(data, BASE_OFFSET, 7)
    return RecordBatch(data)


@given(
    timestamps=st.lists(st.integers(0, 30), min_size=1, max_size=6),
    wanted=st.one_of(st.integers(-5, 35), st.sampled_from([-(2**63), 2**63 - 1])),
    first_offset=st.integers(BASE_OFFSET - 2, BASE_OFFSET + 7),
    codec=st.sampled_from([CompressionType.NONE, CompressionType.GZIP]),
    stamped=st.booleans(),
)
def test_the_search_finds_the_same_as_reading_every_record(
    timestamps: list[int], wanted: int, first_offset: int, codec: CompressionType, stamped: bool
) -> None:
    batch = make(timestamps, codec, stamped=stamped)
    found = (
        TimestampAndOffset(record.timestamp_ms, record.offset, 7)
        for record in batch.records()
        if record.timestamp_ms >= wanted and record.offset >= first_offset
    )
    search = TimestampSearch(batch, wanted, first_offset)
    assert search.run() == next(found, None)
    assert search.is_quick is (codec is CompressionType.NONE)


def test_garbage_is_an_error() -> None:
    data = bytearray(make([1, 2, 3]).data)
    struct.pack_into(">B", data, 61, 0xFF)
    with pytest.raises(CorruptRecordException, match="batch at offset 100: record 0"):
        TimestampSearch(RecordBatch(data), 9, 0).run()
