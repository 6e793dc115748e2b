"""Batches as columns, against the same batches as objects; whichever of the two ways the installed package has."""

from __future__ import annotations

import itertools
import re
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioproducer.errors import CorruptRecordException
from aioproducer.records import batch_columns_pure
from aioproducer.records.batch_columns import BatchColumns
from aioproducer.records.column_buffers import ByteBuffers, ColumnBuffers
from aioproducer.records.record import Record
from aioproducer.records.record_reader import read_records
from aioproducer.records.record_writer import RecordWriter

data = st.none() | st.binary(max_size=80) | st.integers(120, 300).map(bytes)
headers = st.lists(st.tuples(st.text(max_size=10), data), max_size=3)
timestamps = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 10_000)
bodies = st.lists(st.tuples(timestamps, data, data, headers), max_size=20)


def write(records: list[Any]) -> bytes:
    writer = RecordWriter()
    for index, record in enumerate(records):
        writer.append(index, *record)
    return writer.freeze()


def byte_rows(buffers: ByteBuffers) -> list[bytes | None]:
    ends = struct.unpack(f"<{len(buffers.ends) // 4}i", buffers.ends)
    rows: list[bytes | None] = [buffers.data[begin:end] for begin, end in itertools.pairwise(ends)]
    assert (ends[0], ends[-1]) == (0, len(buffers.data))
    if buffers.valid is not None:
        assert len(buffers.valid) == (len(rows) + 7) // 8
        rows = [row if buffers.valid[at >> 3] >> (at & 7) & 1 else None for at, row in enumerate(rows)]
    return rows


def records_of(buffers: ColumnBuffers) -> list[Record]:
    assert buffers.keys is not None
    assert buffers.values is not None
    assert buffers.headers is not None
    names, values = byte_rows(buffers.headers.names), byte_rows(buffers.headers.values)
    pairs = [(name.decode(), value) for name, value in zip(names, values, strict=True) if name is not None]
    ends = struct.unpack(f"<{buffers.rows + 1}i", buffers.headers.ends)
    return [
        Record(*row)
        for row in zip(
            struct.unpack(f"<{buffers.rows}q", buffers.offsets),
            struct.unpack(f"<{buffers.rows}q", buffers.timestamps),
            byte_rows(buffers.keys),
            byte_rows(buffers.values),
            [tuple(pairs[begin:end]) for begin, end in itertools.pairwise(ends)],
            strict=True,
        )
    ]


@given(st.lists(bodies, max_size=4), st.integers(0, 45), st.integers(0, 45))
def test_the_records_of_several_batches(batches: list[list[Any]], begin: int, end: int) -> None:
    columns, expected, offset = BatchColumns(True, True, True), [], 0
    for records in batches:
        body, count = write(records), len(records)
        taken = columns.append(body, count, offset, count - 1, 0, None, begin, end)
        read = read_records(body, count=count, base_offset=offset, last_offset_delta=count - 1, base_timestamp=0)
        wanted = [record for record in read if begin <= record.offset < end]
        assert taken == len(wanted)
        expected += wanted
        offset += count
    assert columns.count == len(expected)
    assert records_of(columns.buffers()) == expected
    held = [sum(map(len, filter(None, record[2:4]))) for record in expected]
    in_headers = [len(name.encode()) + len(value or b"") for record in expected for name, value in record.headers]
    assert columns.size() == 16 * len(expected) + sum(held) + sum(in_headers)


@settings(max_examples=300)
@given(good=bodies, records=bodies.filter(bool), data=st.data())
def test_malformed_records_raise_what_the_reader_raises_and_leave_nothing(
    good: list[Any], records: list[Any], data: st.DataObject
) -> None:
    body = bytearray(write(records))
    count = len(records) + data.draw(st.sampled_from([-1, 0, 0, 0, 1]))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(body) - 1))
        if data.draw(st.booleans()):
            body[place] = data.draw(st.integers(0, 255))
        else:
            body[place:place] = data.draw(st.binary(max_size=12))
    batch: dict[str, Any] = {"base_offset": 100, "last_offset_delta": len(records) - 1, "base_timestamp": 2**40}
    columns = BatchColumns(True, True, True)
    columns.append(write(good), len(good), 0, len(good) - 1, 0, None, 0, 1000)
    before = records_of(columns.buffers())
    arguments = (bytes(body), count, 100, len(records) - 1, 2**40, None, 0, 1000)
    try:
        expected = list(read_records(bytes(body), count=count, **batch))
    except CorruptRecordException as error:
        with pytest.raises(CorruptRecordException, match=f"^{re.escape(str(error))}$"):
            columns.append(*arguments)
        expected = []
    else:
        columns.append(*arguments)
    assert records_of(columns.buffers()) == before + expected


@given(bodies)
def test_both_ways_are_the_same_bytes(records: list[Any]) -> None:
    body, count = write(records), len(records)
    for wanted in ((True, True, True), (True, False, False), (False, True, False), (False, False, True)):
        one, other = BatchColumns(*wanted), batch_columns_pure.BatchColumns(*wanted)
        for columns in (one, other):
            columns.append(body, count, 7, count - 1, 0, 77, 0, 1000)
        buffers = one.buffers()
        assert tuple(buffers) == tuple(other.buffers())
        assert one.size() == other.size()
        assert tuple(part is not None for part in buffers[3:]) == wanted
        assert struct.unpack(f"<{count}q", buffers.timestamps) == (77,) * count


def test_a_name_that_is_no_utf_8_is_shown_as_well_as_can_be() -> None:
    writer = RecordWriter()
    writer.append(0, 0, None, None, [("zz", b"v")])
    body = writer.freeze().replace(b"zz", b"\xff\xfe")
    columns = BatchColumns(False, False, True)
    columns.append(body, 1, 0, 0, 0, None, 0, 1)
    headers = columns.buffers().headers
    assert headers is not None
    assert byte_rows(headers.names) == ["\ufffd\ufffd".encode()]
