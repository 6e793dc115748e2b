"""Records that lie in columns, against the same records as objects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.records.record_columns import RecordColumns
from aioproducer.records.record_writer import MAX_RECORD_OVERHEAD, RecordWriter, record_size_upper_bound
from tests.support.columns import Row, byte_column, header_column, number_column, record_columns

data = st.one_of(st.none(), st.binary(max_size=140), st.integers(120, 9000).map(bytes))
headers = st.none() | st.lists(st.tuples(st.text(max_size=40), st.none() | st.binary(max_size=140)), max_size=5)
rows = st.lists(st.tuples(data, data, headers), min_size=1, max_size=12)


@given(rows, st.integers(0, 1000), st.integers(0, 17), st.integers(-(2**40), 2**63 - 1), st.integers(0, 2**31 - 20))
def test_rows_are_written_as_the_records_they_are(
    records: list[Row], base: int, first_bit: int, timestamp_delta: int, offset_delta: int
) -> None:
    columns = record_columns(records, base=base, first_bit=first_bit)
    by_row, by_object = RecordWriter(), RecordWriter()
    for row, (value, key, some_headers) in enumerate(records):
        before = by_row.size()
        sizes = columns.key_size(row), columns.value_size(row)
        rest = columns.rest(row, *sizes)
        columns.append_to(by_row, offset_delta + row, timestamp_delta, row, *sizes, rest)
        by_object.append(offset_delta + row, timestamp_delta, key, value, some_headers)
        key_size, value_size = (-1 if one is None else len(one) for one in (key, value))
        assert sizes == (key_size, value_size)
        bound = record_size_upper_bound(key_size, value_size, some_headers)
        assert MAX_RECORD_OVERHEAD + rest == bound >= by_row.size() - before
    assert by_row.freeze() == by_object.freeze()


@given(rows, st.integers(0, 1000), st.integers(0, 17))
def test_rows_as_objects(records: list[Row], base: int, first_bit: int) -> None:
    columns = record_columns(records, base=base, first_bit=first_bit)
    assert columns.keys is not None
    assert columns.headers is not None
    for row, (value, key, some_headers) in enumerate(records):
        assert columns.values.value(row) == value
        assert columns.keys.value(row) == key
        assert columns.headers.value(row) == (list(some_headers or ()) or None)


def test_keys_and_headers_need_not_be_there() -> None:
    columns = RecordColumns(byte_column([b"value", None]), None, None)
    by_row, by_object = RecordWriter(), RecordWriter()
    for row, value in enumerate((b"value", None)):
        size = -1 if value is None else 5
        rest = columns.rest(row, -1, size)
        columns.append_to(by_row, row, 5, row, -1, size, rest)
        by_object.append(row, 5, None, value, None)
        assert MAX_RECORD_OVERHEAD + rest == record_size_upper_bound(-1, size, None)
    assert by_row.freeze() == by_object.freeze()


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30), st.integers(0, 17))
def test_numbers(numbers: list[int | None], first_bit: int) -> None:
    column = number_column(numbers, first_bit=first_bit)
    assert [column.value(row) for row in range(len(numbers))] == [-1 if one is None else one for one in numbers]


@pytest.mark.parametrize("name", [None, b"name"])
def test_a_header_without_a_name_is_found(name: bytes | None) -> None:
    column = header_column([[("a", None)], None, [("b", None), ("c", b"")]])
    assert [column.nameless(row) for row in range(3)] == [False, False, False]
    nameless = type(column)(
        (0).to_bytes(8, "little") + (1).to_bytes(8, "little"), 0, None, 0, byte_column([name]), byte_column([b"v"])
    )
    assert nameless.nameless(0) == (name is None)
