from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioproducer.compat.aiokafka import BatchBuilder

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
    theirs = pytest.importorskip("aiokafka.record.default_records", reason="aiokafka is not installed")
    mine = BatchBuilder(SIZE)
    # In Python: the extension module leaves the last byte of a batch free.
    other = theirs._DefaultRecordBatchBuilderPy(2, 0, 0, -1, -1, 0, SIZE)
    for offset, (key, value, timestamp, headers) in enumerate(records):
        told = mine.append(key=key, value=value, timestamp=timestamp, headers=headers)
        expected = other.append(offset, timestamp, key, value, headers)
        if expected is None:
            assert told is None
            break
        assert told == (expected.offset, expected.size, expected.timestamp)
    assert mine.size() == other.size()
