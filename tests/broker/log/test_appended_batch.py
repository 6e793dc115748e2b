"""The fields that a broker sets in a batch, and those that it leaves alone."""

from __future__ import annotations

import pytest

from aioproducer.broker.log.appended_batch import set_base_offset, set_log_append_time
from aioproducer.records.compression import CompressionType, compress
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter
from aioproducer.types import TimestampType


@pytest.fixture(params=[CompressionType.NONE, CompressionType.GZIP], ids=str)
def batch(request: pytest.FixtureRequest) -> bytearray:
    writer = RecordWriter()
    for index in range(3):
        writer.append(index, index * 10, b"key", b"value", [("h", None)])
    body = compress(request.param, writer.freeze())
    header = encode_batch_header(
        body, count=3, base_timestamp=1000, max_timestamp=1020, codec=request.param, producer_id=4, producer_epoch=1,
        base_sequence=8, transactional=True,
    )  # fmt: skip
    return bytearray(header + body)


def test_base_offset_and_leader_epoch(batch: bytearray) -> None:
    before = bytes(batch)
    set_base_offset(batch, 2**60, 17)
    view = RecordBatch(batch)
    view.verify()
    assert (view.base_offset, view.last_offset, view.partition_leader_epoch) == (2**60, 2**60 + 2, 17)
    assert [record.offset for record in view.records()] == [2**60, 2**60 + 1, 2**60 + 2]
    assert batch[8:12] == before[8:12]
    assert batch[16:] == before[16:]


def test_log_append_time(batch: bytearray) -> None:
    before = RecordBatch(bytes(batch))
    assert before.timestamp_type is TimestampType.CREATE_TIME
    set_log_append_time(batch, 5000)
    after = RecordBatch(batch)
    after.verify()
    assert after.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert after.max_timestamp == 5000
    assert [record.timestamp_ms for record in after.records()] == [5000] * 3
    assert [record._replace(timestamp_ms=0) for record in after.records()] == [
        record._replace(timestamp_ms=0) for record in before.records()
    ]
    for name in RecordBatch.__slots__:
        if name not in {"data", "attributes", "max_timestamp", "crc"}:
            assert getattr(after, name) == getattr(before, name)
    assert (after.codec, after.is_transactional) == (before.codec, before.is_transactional)
    batch.append(0)  # nothing holds on to its memory
