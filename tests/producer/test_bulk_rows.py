from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import KafkaError
from aioproducer.producer.bulk_rows import Rows
from aioproducer.producer.bulk_tally import BulkTally
from aioproducer.producer.producer_batch import ProducerBatch

from .parts import Accumulation

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


@given(st.lists(COLUMNS, max_size=60), st.integers(3_000, 20_000))
def test_rows_are_appended_as_single_records_are(records: list[Any], memory: int) -> None:
    """The same batches, byte for byte; the same records refused; and the same first one that has to wait."""
    single, bulk = Accumulation(memory=memory), Accumulation(memory=memory)
    for here in (single, bulk):
        here.add_topic("t", 3)
    refused_singly, stopped = [], len(records)
    for index, (value, key, partition, timestamp_ms, headers) in enumerate(records):
        try:
            if single.accumulator.append("t", key, value, partition, timestamp_ms, headers) is None:
                stopped = index
                break
        except KafkaError as error:
            refused_singly.append((7 + index, str(error)))
    rows = Rows(7, *([record[column] for record in records] for column in range(5)))
    refused: list[tuple[int, KafkaError]] = []
    tally = BulkTally(bulk.loop)
    assert rows.append_to(bulk.accumulator, "t", 0, tally, refused) == stopped
    assert [(index, str(error)) for index, error in refused] == refused_singly
    assert bytes_of(bulk) == bytes_of(single)


def test_columns_that_were_not_given_are_none() -> None:
    rows = Rows(0, [b"value", None, "text"], None, None, None, None)
    assert rows.record(0) == (b"value", None, None, None, None)
    assert rows.value_bytes() == 5
