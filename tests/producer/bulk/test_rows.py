from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import KafkaError
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.bulk.append import OPENING, WORK
from aioproducer.producer.bulk.rows import SINGLE, Rows
from aioproducer.producer.bulk.tally import BulkTally
from tests.producer.simulations.standing_loop import Accumulation

COLUMNS = st.tuples(
    st.none() | st.binary(max_size=300) | st.just("no bytes"),
    st.none() | st.binary(max_size=9),
    st.none() | st.integers(-1, 3),
    st.none() | st.integers(-1, 2**40),
    st.none() | st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=9)), max_size=2),
)


def bytes_of(here: Accumulation) -> list[tuple[int, bytes, bytes, int]]:
    def frozen(batch: ProducerBatch) -> tuple[int, bytes, bytes, int]:
        batch.freeze()
        return batch.result.partition, batch.records, batch.sizes, batch.max_timestamp

    return [frozen(batch) for batch in here.opened]


VALUES = st.none() | st.binary(max_size=300) | st.integers(0, 1300).map(bytes) | st.just("no bytes")
ALIKE = st.tuples(VALUES, st.integers(0, 90)).map(lambda one: [one[0]] * one[1])


@given(st.lists(COLUMNS, max_size=60), st.integers(3_000, 20_000))
def test_rows_are_appended_as_single_records_are(records: list[Any], memory: int) -> None:
    """The same batches, byte for byte; the same records refused; and the same first one that has to wait."""
    compare(records, Rows(7, *([record[column] for record in records] for column in range(5))), memory=memory)


@given(
    st.lists(VALUES, max_size=60) | ALIKE,
    st.lists(st.tuples(st.none() | st.binary(max_size=9), st.integers(0, 1000).map(bytes)), max_size=12),
    st.integers(3_000, 20_000),
    st.sampled_from([500, 1000, 5000]),
    st.booleans(),
)
def test_values_alone_are_appended_as_single_records_are(
    values: list[Any], before: list[Any], memory: int, batch_size: int, adaptive: bool
) -> None:
    """The same, wherever single records have left the partitioner; and the next of them finds it where it would be."""
    rows = Rows(7, values, None, None, None, None)
    records = [(value, None, None, None, None) for value in values]
    compare(records, rows, before, memory=memory, batch_size=batch_size, max_request_size=1200, adaptive=adaptive)


def compare(records: list[Any], rows: Rows, around: Sequence[tuple[Any, bytes]] = (), **config: Any) -> None:
    single, bulk = Accumulation(**config), Accumulation(**config)
    for here in (single, bulk):
        here.add_topic("t", 3)
        for key, value in around:
            here.append("t", value, key)
    refused_singly, stopped = [], len(records)
    for index, (value, key, partition, timestamp_ms, headers) in enumerate(records):
        try:
            if single.accumulator.append("t", value, key, partition, timestamp_ms, headers) is None:
                stopped = index
                break
        except KafkaError as error:
            refused_singly.append((7 + index, str(error)))
    refused: list[tuple[int, KafkaError]] = []
    tally = BulkTally(bulk.loop)
    assert rows.append_to(bulk.accumulator, "t", 0, tally, refused) == stopped
    assert [(index, str(error)) for index, error in refused] == refused_singly
    for here in (single, bulk):
        for key, value in around:
            here.append("t", value, key)
    assert bytes_of(bulk) == bytes_of(single)
    assert [batch.largest for batch in bulk.opened] == [batch.largest for batch in single.opened]
    assert bulk.pool.available == single.pool.available


def test_values_alone_are_one_entry_in_each_batch() -> None:
    here = Accumulation(memory=100_000)
    here.add_topic("t", 3)
    tally = BulkTally(here.loop)
    assert Rows(0, [bytes(100)] * 30, None, None, None, None).append_to(here.accumulator, "t", 0, tally, []) == 30
    assert [batch.result.number_waiting() for batch in here.opened] == [1] * len(here.opened)
    for batch in here.opened:
        batch.freeze()
        assert batch.succeed(0, -1)
    assert tally.result(30).delivered == 30


def test_columns_that_were_not_given_are_none() -> None:
    rows = Rows(0, [b"value", None, "text"], None, None, None, None)
    assert rows.record(0) == (b"value", None, None, None, None)
    assert rows.value_bytes() == 5


@pytest.mark.parametrize("keyed", [False, True])
def test_a_call_does_only_so_much(keyed: bool) -> None:
    """The loop may get a turn before rows have opened batches for all partitions."""
    here = Accumulation(memory=10**7)
    here.add_topic("t", 1000)
    count = 1000
    keys = [b"%d" % number for number in range(count)] if keyed else None
    partitions = None if keyed else [*range(count)]
    rows = Rows(0, [b"v"] * count, keys, partitions, None, None)
    at, opened, tally = 0, 0, BulkTally(here.loop)
    while at < count:
        before, at = at, int(rows.append_to(here.accumulator, "t", at, tally, []))
        assert before < at <= before + WORK
        assert len(here.opened) - opened <= max(WORK // OPENING, WORK // SINGLE) + 1
        opened = len(here.opened)
    assert sum(batch.count for batch in here.opened) == count
