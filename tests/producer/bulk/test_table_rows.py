"""Rows of a table, against single records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aioproducer.errors import IllegalArgumentException, KafkaError, RecordTooLargeException
from aioproducer.producer.bulk.table_rows import TableRows
from aioproducer.producer.bulk.tally import BulkTally
from aioproducer.records.record_columns import RecordColumns
from tests.producer.simulations.standing_loop import Accumulation
from tests.support.columns import byte_column, header_column, number_column, record_columns

from .test_rows import bytes_of

NAMES = {"value": "v", "key": "k", "headers": "h", "partition": "p", "timestamp": "ts"}
RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=300),
        st.none() | st.binary(max_size=20),
        st.none() | st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=9)), max_size=2),
        st.sampled_from([None, -1, 0, 1, 2, 3]),
        st.none() | st.integers(-1, 2**40),
    ),
    min_size=1,
    max_size=60,
)


def rows_of(records: list[Any], first: int = 7, first_bit: int = 0, columns: Sequence[int] = range(5)) -> TableRows:
    """``columns`` that are not there have None for all records."""
    of_records = record_columns([record[:3] for record in records], first_bit=first_bit)
    return TableRows(
        first,
        len(records),
        RecordColumns(
            of_records.values, of_records.keys if 1 in columns else None, of_records.headers if 2 in columns else None
        ),
        number_column([record[3] for record in records], first_bit=first_bit) if 3 in columns else None,
        number_column([record[4] for record in records], first_bit=first_bit) if 4 in columns else None,
        NAMES,
    )


def nothing_below_0(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


@given(RECORDS, st.sets(st.integers(1, 4)), st.integers(3_000, 20_000), st.booleans())
@example([(b"v", None, None, None, None)] * 60, set(), 20_000, False)
def test_rows_are_appended_as_single_records_are(
    records: list[Any], columns: set[int], memory: int, ignore_keys: bool
) -> None:
    """The same batches, byte for byte, and the same first one that has to wait."""
    records = [tuple(one if at in {0, *columns} else None for at, one in enumerate(record)) for record in records]
    single, bulk = (Accumulation(memory=memory, ignore_keys=ignore_keys) for _ in range(2))
    for here in (single, bulk):
        here.add_topic("t", 3)
    stopped = len(records)
    for index, (value, key, headers, partition, timestamp_ms) in enumerate(records):
        partition, timestamp_ms = nothing_below_0(partition), nothing_below_0(timestamp_ms)
        if single.accumulator.append("t", value, key, partition, timestamp_ms, headers) is None:
            stopped = index
            break
    rows = rows_of(records, columns=[0, *columns])
    refused: list[tuple[int, KafkaError]] = []
    tally = BulkTally(bulk.loop)
    assert rows.append_to(bulk.accumulator, "t", 0, tally, refused) == stopped
    assert refused == []
    assert bytes_of(bulk) == bytes_of(single)
    if stopped < len(records):
        value, key, headers, partition, timestamp_ms = records[stopped]
        as_objects = (value, key, nothing_below_0(partition), nothing_below_0(timestamp_ms), headers or None)
        assert rows.record(stopped) == as_objects


def test_the_account_has_a_place_for_every_row() -> None:
    here = Accumulation(memory=100_000)
    here.add_topic("t", 3)
    tally = BulkTally(here.loop)
    rows = rows_of([(b"v", b"%d" % number, None, None, None) for number in range(50)])
    assert rows.append_to(here.accumulator, "t", 0, tally, []) == 50
    for batch in here.opened:
        batch.freeze()
        assert batch.succeed(0, -1)
    result = tally.result(50)
    assert sorted(offsets.records for offsets in result.offsets.values()) == sorted(
        batch.count for batch in here.opened
    )
    assert result.delivered == 50


def test_an_unsendable_row_is_refused_by_row_and_column_and_holds_up_no_other() -> None:
    here = Accumulation(max_request_size=1000)
    here.add_topic("t", 1)
    records = [
        (b"fine", None, None, None, None),
        (b"x" * 2000, None, None, None, None),
        (b"v", None, None, -2, None),
        (b"v", None, None, None, -5),
        (b"fine", None, None, None, None),
    ]
    rows, tally = rows_of(records), BulkTally(here.loop)
    refused: list[tuple[int, KafkaError]] = []
    here.accumulator.detour = True  # whether or not there is room now
    assert rows.append_to(here.accumulator, "t", 1, tally, refused) == 4
    assert [(index, type(error)) for index, error in refused] == [
        (8, RecordTooLargeException),
        (9, IllegalArgumentException),
        (10, IllegalArgumentException),
    ]
    assert [str(error).partition(";")[0] for _, error in refused] == [
        "row 8, column 'v' of 2000 bytes: the record takes up to 2086 bytes, more than max.request.size=1000: raise it "
        "(and the topic's max.message.bytes), or send a smaller record",
        "row 9, column 'p': the partition is -2",
        "row 10, column 'ts': the timestamp is -5 ms",
    ]
    for at, (_, error) in enumerate(refused[1:], 2):
        with pytest.raises(IllegalArgumentException) as caught:
            rows.record(at)
        assert str(caught.value) == str(error)


def test_a_header_needs_a_name() -> None:
    here = Accumulation()
    here.add_topic("t", 1)
    columns = record_columns([(b"v", None, None)])
    headers = header_column([[("a", None)]])
    headers = type(headers)(bytes(8) + b"\1" + bytes(7), 0, None, 0, byte_column([None]), byte_column([None]))
    columns.headers = headers
    refused: list[tuple[int, KafkaError]] = []
    rows = TableRows(0, 1, columns, None, None, NAMES)
    assert rows.append_to(here.accumulator, "t", 0, BulkTally(here.loop), refused) == 1
    assert str(refused[0][1]) == "row 0, column 'h': a header's name is null or not UTF-8; it must be text"
