from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import IllegalArgumentException, IllegalStateException
from aioproducer.producer.bulk.table_columns import READ_AHEAD_BYTES, READ_AHEAD_ROWS, TableColumns

pa = pytest.importorskip("pyarrow")

BYTES = [
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.binary()),
]
TIMES = [pa.timestamp(unit, tz) for unit in ("s", "ms", "us", "ns") for tz in (None, "UTC", "Europe/Berlin")]
TEXTS = st.none() | st.text(max_size=20)


def read_all(columns: TableColumns) -> list[Any]:
    read: list[Any] = []
    while (rows := columns.read()) is not None:
        assert rows.first == len(read)
        read += [rows.record(at) for at in range(rows.count)]
    assert columns.broken is None
    assert columns.count == len(read)
    return read


def encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=60), st.integers(0, 9), st.data())
def test_text_and_bytes_of_any_kind(rows: list[tuple[str | None, str | None]], skipped: int, data: Any) -> None:
    kinds = [data.draw(st.sampled_from(BYTES)) for _ in range(2)]

    def array(at: int) -> Any:
        kind = kinds[at]
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        texts = [row[at] for row in rows]
        given = pa.array([encoded(text) for text in texts] if "binary" in str(plain) else texts, plain)
        return given.dictionary_encode() if plain is not kind else given

    table = pa.table({"value": array(0), "key": array(1)}).slice(skipped)
    chunks = pa.Table.from_batches(table.to_batches(max_chunksize=7), table.schema)
    expected = [(encoded(value), encoded(key), None, None, None) for value, key in rows[skipped:]]
    assert read_all(TableColumns(chunks, value="value", key="key")) == expected


def test_bytes_of_fixed_size_and_nothing_but_nulls() -> None:
    table = pa.table({"v": pa.array([b"four", None, b"more"], pa.binary(4)), "k": pa.nulls(3)})
    assert read_all(TableColumns(table, value="v", key="k")) == [
        (b"four", None, None, None, None),
        (None, None, None, None, None),
        (b"more", None, None, None, None),
    ]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint64()])
def test_partitions_are_integers_of_any_width(kind: Any) -> None:
    table = pa.table({"v": ["a", "b", "c"], "p": pa.array([1, None, 5], kind)}).slice(1)
    assert [record[2] for record in read_all(TableColumns(table, value="v", partition="p"))] == [None, 5]


@pytest.mark.parametrize("kind", TIMES, ids=str)
def test_times_of_any_unit_are_milliseconds(kind: Any) -> None:
    ticks = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}[kind.unit]
    table = pa.table({"v": ["a"] * 3, "ts": pa.array([1_700_000_000 * ticks, None, 5 * ticks + ticks // 2], kind)})
    half = 500 if ticks > 1 else 0
    stamps = [record[3] for record in read_all(TableColumns(table, value="v", timestamp="ts"))]
    assert stamps == [1_700_000_000_000, None, 5000 + half]


@pytest.mark.parametrize(
    ("kind", "given"), [(pa.date32(), 2), (pa.date64(), 2 * 86_400_000), (pa.int64(), 172_800_000)]
)
def test_dates_and_integers_are_times_too(kind: Any, given: int) -> None:
    table = pa.table({"v": ["a"], "ts": pa.array([given], kind)})
    assert read_all(TableColumns(table, value="v", timestamp="ts"))[0][3] == 172_800_000


HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)


@given(st.lists(HEADERS, max_size=30), st.integers(0, 5), st.booleans(), st.booleans())
def test_headers_as_lists_and_maps(rows: list[Any], skipped: int, as_map: bool, large: bool) -> None:
    entry = pa.struct([("key", pa.string()), ("value", pa.binary())])
    if as_map:
        column = pa.array(rows, pa.map_(pa.string(), pa.binary()))
    else:
        given = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in rows]
        column = pa.array(given, pa.large_list(entry) if large else pa.list_(entry))
    table = pa.table({"v": pa.array([b"v"] * len(rows), pa.binary()), "h": column}).slice(skipped)
    read = [record[4] for record in read_all(TableColumns(table, value="v", headers="h"))]
    assert read == [row or None for row in rows[skipped:]]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_of_other_libraries(library: str) -> None:
    frame = pytest.importorskip(library).DataFrame({"v": ["one", None, "three"], "k": ["a", "b", None], "p": [0, 1, 2]})
    assert read_all(TableColumns(frame, value="v", key="k", partition="p")) == [
        (b"one", b"a", 0, None, None),
        (None, b"b", 1, None, None),
        (b"three", None, 2, None, None),
    ]


def test_a_record_batch_and_a_stream_are_tables_too() -> None:
    batch = pa.record_batch({"v": ["a", "b"]})
    assert len(read_all(TableColumns(batch, value="v"))) == 2
    stream = pa.RecordBatchReader.from_batches(batch.schema, iter([batch] * 5))
    assert len(read_all(TableColumns(stream, value="v"))) == 10


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_rows_that_suddenly_are_large_are_read_a_few_at_a_time(kind: Any) -> None:
    large = [bytes(READ_AHEAD_BYTES // 2)] * 50
    columns = TableColumns(pa.table({"v": pa.array([b"small"] * READ_AHEAD_ROWS * 2 + large, kind)}), value="v")
    count, portions = 0, []
    while (rows := columns.read()) is not None:
        portions.append(sum(len(rows.record(at)[0]) for at in range(rows.count)))
        count += rows.count
    assert count == READ_AHEAD_ROWS * 2 + 50
    assert max(portions) <= 2 * READ_AHEAD_BYTES


def test_a_stream_is_read_as_it_is_needed_and_a_batch_in_portions() -> None:
    taken = 0
    batch = pa.record_batch({"v": pa.array([b"v" * 1000] * 5000, pa.binary())})

    def batches() -> Iterator[Any]:
        nonlocal taken
        for _ in range(3):
            taken += 1
            yield batch

    columns = TableColumns(pa.RecordBatchReader.from_batches(batch.schema, batches()), value="v")
    rows = columns.read()
    assert rows is not None
    assert taken == 1
    largest = 0
    while (rows := columns.read()) is not None:
        largest = max(largest, rows.count)
    assert READ_AHEAD_BYTES // 1000 // 2 < largest <= READ_AHEAD_BYTES // 1000
    small = TableColumns(pa.table({"v": ["x"] * 3 * READ_AHEAD_ROWS}), value="v")
    assert max(rows.count for rows in iter(small.read, None)) == READ_AHEAD_ROWS


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"value": "valeu"}, "value='valeu': the table has no such column; did you mean 'value'?"),
        ({"value": "xyz"}, "value='xyz': the table has no such column; it has 'value', 'number', 'twice', 'twice'"),
        ({"value": "twice"}, "value='twice': the table has 2 columns of this name"),
        ({"value": "number"}, "column 'number' is a double; as value it must be bytes or text"),
        ({"value": "value", "key": "number"}, "column 'number' is a double; as key it must be bytes or text"),
        ({"value": "value", "partition": "number"}, "column 'number' is a double; as partition it must be an integer"),
        ({"value": "value", "timestamp": "value"}, "column 'value' is a string; as timestamp it must be a timestamp"),
        ({"value": "value", "headers": "value"}, "column 'value' is a string; as headers it must be a list of structs"),
    ],
)
def test_a_column_that_will_not_do_is_named_with_what_to_do(columns: dict[str, str], message: str) -> None:
    table = pa.Table.from_arrays(
        [pa.array(["v"]), pa.array([1.5]), pa.array([1]), pa.array([1])], ["value", "number", "twice", "twice"]
    )
    with pytest.raises(IllegalArgumentException) as caught:
        TableColumns(table, **columns)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("table", [[b"v"], {"v": ["a"]}, None, "t"])
def test_a_value_that_is_no_table_is_refused(table: Any) -> None:
    with pytest.raises(IllegalArgumentException, match=f"the table is of type {type(table).__name__}; it must be"):
        TableColumns(table, value="v")


def test_a_number_that_does_not_fit_fails_with_its_rows_after_earlier_rows() -> None:
    whole = pa.table({"v": ["x"] * 9, "ts": pa.array([1] * 8 + [2**60], pa.timestamp("s"))})
    columns = TableColumns(whole, value="v", timestamp="ts")
    rows = columns.read()
    assert rows is not None
    assert (rows.count, columns.read()) == (4, None)
    assert isinstance(columns.broken, IllegalArgumentException)
    assert str(columns.broken).startswith("column 'ts', rows 4 to 8: ")


def test_without_pyarrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(IllegalStateException, match=r"pip install 'aioproducer\[arrow\]'"):
        TableColumns(object(), value="v")
