"""Records as Arrow's columns."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from aioproducer.broker.log.appended_batch import set_base_offset
from aioproducer.errors import CorruptRecordException
from aioproducer.records.batch_columns import BatchColumns
from aioproducer.records.compression import CompressionType, compress
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter
from aioproducer.types import TopicPartition

pa = pytest.importorskip("pyarrow")

from aioproducer.spark.source.arrow_columns import ARROW_TYPES, Run, arrow_batch  # noqa: E402 - they import pyarrow

PARTITION = TopicPartition("t", 3)
Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def batch(offset: int, *rows: Row, codec: CompressionType = CompressionType.NONE, **header: Any) -> RecordBatch:
    writer = RecordWriter()
    for index, (timestamp, key, value, headers) in enumerate(rows):
        writer.append(index, timestamp, key, value, headers)
    body = compress(codec, writer.freeze())
    right = {"count": len(rows), "base_timestamp": 0, "max_timestamp": 0, "codec": codec}
    data = bytearray(encode_batch_header(body, **{**right, **header}) + body)
    set_base_offset(data, offset, 5)
    return RecordBatch(data)


def read(batches: list[RecordBatch], *names: str, begin: int = 0, end: int = 100) -> Any:
    columns = BatchColumns("key" in names, "value" in names, "headers" in names)
    runs = [Run(taken, one) for one in batches if (taken := one.append_to(columns, begin, end))]
    schema = pa.schema([(name, ARROW_TYPES[name]) for name in names])
    table = arrow_batch(schema, PARTITION, columns.buffers(), runs)
    table.validate(full=True)
    return table


FIRST: Row = (1, b"k", None, [("a", b"1"), ("b", None)])
SECOND: Row = (2, None, b"v", [])


def test_every_column() -> None:
    table = read([batch(7, FIRST, SECOND), batch(9, (3, b"", b"w" * 200, []), log_append_time=True)], *ARROW_TYPES)
    assert table.schema.names == list(ARROW_TYPES)
    rows = table.to_pylist()
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert [row["timestamp"] - epoch for row in rows] == [datetime.timedelta(milliseconds=ms) for ms in (1, 2, 0)]
    assert [(row["key"], row["value"]) for row in rows] == [(b"k", None), (None, b"v"), (b"", b"w" * 200)]
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [("t", 3, at) for at in (7, 8, 9)]
    assert [row["timestampType"] for row in rows] == [0, 0, 1]
    assert [row["headers"] for row in rows] == [[{"key": "a", "value": b"1"}, {"key": "b", "value": None}], None, None]


def test_the_batch_column_has_the_fields_of_the_batch() -> None:
    ours = {"producer_id": 11, "producer_epoch": 2, "base_sequence": 2**31 - 1, "transactional": True}
    compressed = batch(8, *[SECOND] * 3, codec=CompressionType.GZIP, **ours)
    table = read([batch(7, SECOND), compressed], "batch", begin=7, end=10)
    unknown, *others = [row["batch"] for row in table.to_pylist()]
    assert unknown == {
        "baseOffset": 7,
        "sizeInBytes": len(batch(7, SECOND).data),
        "recordCount": 1,
        "compression": "none",
        "producerId": None,
        "producerEpoch": None,
        "sequence": None,
        "leaderEpoch": 5,
        "transactional": False,
        "control": False,
    }
    assert [other["sequence"] for other in others] == [2**31 - 1, 0], "after the largest comes 0"
    for other in others:
        assert other | {"sequence": 0} == {
            "baseOffset": 8,
            "sizeInBytes": compressed.size_in_bytes,
            "recordCount": 3,
            "compression": "gzip",
            "producerId": 11,
            "producerEpoch": 2,
            "sequence": 0,
            "leaderEpoch": 5,
            "transactional": True,
            "control": False,
        }


@pytest.mark.parametrize("names", [("offset",), ("topic", "offset"), ("value",), ("headers", "partition")])
def test_some_columns(names: tuple[str, ...]) -> None:
    whole = read([batch(0, FIRST, SECOND)], *ARROW_TYPES)
    assert read([batch(0, FIRST, SECOND)], *names).equals(whole.select(list(names)))


def test_a_timestamp_beyond_sparks_time() -> None:
    far = batch(4, SECOND, base_timestamp=2**62)
    with pytest.raises(CorruptRecordException, match=r"t-3: a timestamp of the records 4 to 4 does not fit"):
        read([far], "timestamp")
    assert read([far], "value").num_rows == 1
