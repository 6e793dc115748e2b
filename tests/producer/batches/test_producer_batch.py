from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import IllegalStateException
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import encode_batch_header
from tests.producer.simulations.standing_loop import NOW_MS, Loop, make_batch

data = st.none() | st.binary(max_size=20)
headers = st.none() | st.lists(st.tuples(st.text(max_size=5), data), max_size=3)


@given(records=st.lists(st.tuples(st.integers(0, 2**62), data, data, headers), min_size=1, max_size=10))
def test_its_bytes_are_its_records_and_its_sizes_their_metadata(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]],
) -> None:
    batch = make_batch(Loop())
    deliveries: list[Delivery] = []
    for record in records:
        before = batch.size()
        deliveries.append(batch.append(*record))
        assert batch.size() > before
    assert batch.count == len(records)
    assert batch.max_timestamp == max(NOW_MS, *(timestamp for timestamp, *_ in records))
    size = batch.size()
    batch.freeze()
    assert len(batch.records) == batch.size() == size
    header = encode_batch_header(
        batch.records, count=batch.count, base_timestamp=batch.base_timestamp, max_timestamp=batch.max_timestamp
    )
    read = [
        (record.timestamp_ms, record.key, record.value, list(record.headers))
        for record in RecordBatch(header + batch.records).records()
    ]
    assert read == [(timestamp, key, value, list(more or ())) for timestamp, key, value, more in records]

    assert batch.succeed(1000, -1)
    for index, (delivery, (timestamp, key, value, _)) in enumerate(zip(deliveries, records, strict=True)):
        metadata = delivery.result()
        assert metadata.offset == 1000 + index
        assert metadata.timestamp_ms == timestamp
        assert metadata.serialized_key_size == (-1 if key is None else len(key))
        assert metadata.serialized_value_size == (-1 if value is None else len(value))


def test_is_empty_at_first() -> None:
    batch = make_batch(Loop(), created=5.0, size=700)
    assert (batch.count, batch.size(), batch.allocated, batch.created) == (0, 0, 700, 5.0)
    assert (batch.attempts, batch.retry_at, batch.in_flight, batch.maybe_appended) == (0, 0.0, False, False)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.drain_order) == (-1, -1, -1, -1)


def test_a_frozen_batch_takes_no_more() -> None:
    batch = make_batch(Loop(), records=2)
    buffer = batch.freeze()
    assert buffer is not None
    assert batch.freeze() is None
    frozen = batch.records
    with pytest.raises(IllegalStateException, match="closed"):
        _ = batch.append(NOW_MS, None, b"late", None)
    buffer.records.clear()
    buffer.records.append(0, 0, None, b"another batch's", None)
    assert batch.records == frozen
    assert batch.count == 2


def test_metadata_outlives_the_bytes() -> None:
    batch = make_batch(Loop())
    delivery = batch.append(NOW_MS + 5, b"key", b"value", None)
    batch.freeze()
    batch.header, batch.body = b"header", b"body"
    assert batch.succeed(7, -1)
    batch.release()
    assert (batch.records, batch.header, batch.body) == (b"", b"", b"")
    assert delivery.result().timestamp_ms == NOW_MS + 5
    assert delivery.result().serialized_value_size == 5


def test_has_a_sequence_once_it_was_given_one() -> None:
    batch = make_batch(Loop(), topic="orders", partition=3, records=1)
    assert not batch.has_sequence()
    batch.base_sequence = 0
    assert batch.has_sequence()
    assert repr(batch) == "<ProducerBatch orders-3 count=1 sequence=0>"
