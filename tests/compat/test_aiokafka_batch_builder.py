from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioproducer.compat.aiokafka import BatchBuilder, errors

SIZE = 250
RECORDS = st.tuples(
    st.none() | st.binary(max_size=80),
    st.none() | st.binary(max_size=80),
    st.integers(0, 2**40),
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=80)), max_size=3),
)


@settings(max_examples=50)
@given(st.lists(RECORDS, max_size=6))
def test_it_takes_what_aiokafkas_takes(records: list[Any]) -> None:
    aiokafka_records = pytest.importorskip("aiokafka.record.default_records", reason="aiokafka is not installed")
    mine = BatchBuilder(SIZE)
    # In Python: the extension module leaves the last byte of a batch free.
    other = aiokafka_records._DefaultRecordBatchBuilderPy(2, 0, 0, -1, -1, 0, SIZE)
    for offset, (key, value, timestamp, headers) in enumerate(records):
        appended = mine.append(key=key, value=value, timestamp=timestamp, headers=headers)
        expected = other.append(offset, timestamp, key, value, headers)
        if expected is None:
            assert appended is None
            break
        assert appended == (expected.offset, expected.size, expected.timestamp)
    assert mine.size() == other.size()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"key": 1}, "the key is of type int"),
        ({"value": "text"}, "the value is of type str"),
        ({"timestamp": "1"}, "the timestamp is of type str"),
        ({"headers": {"a": b"b"}}, "the headers are of type dict; they must be a list of pairs"),
        ({"headers": [(1, b"")]}, "a header is"),
        ({"headers": [("name", "text")]}, "a header is"),
    ],
)
def test_an_unsendable_record_is_a_type_error_and_leaves_the_batch_unchanged(
    wrong: dict[str, Any], message: str
) -> None:
    batch = BatchBuilder(SIZE)
    batch.append(key=b"key", value=b"value", timestamp=1)
    before = batch.size()
    with pytest.raises(TypeError, match=message):
        batch.append(**{"key": b"key", "value": b"value", "timestamp": 1, **wrong})
    assert (batch.size(), batch.record_count(), batch.closed()) == (before, 1, False)


def test_a_timestamp_before_the_epoch_is_refused_before_the_batch_is_sent() -> None:
    batch = BatchBuilder(SIZE)
    with pytest.raises(errors.IllegalArgumentError, match="the timestamp is -5; it must be from 0 on"):
        batch.append(key=None, value=b"", timestamp=-5)
    assert batch.record_count() == 0


def test_a_batch_keeps_the_headers_that_it_was_given() -> None:
    headers = [["name", b"value"]]
    batch = BatchBuilder(SIZE)
    batch.append(key=None, value=b"", timestamp=1, headers=headers)
    headers.clear()
    assert [headers for _, _, _, headers in batch.records] == [[("name", b"value")]]
