from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.compat.aiokafka import BatchBuilder

RECORDS = st.tuples(
    st.none() | st.binary(max_size=80),
    st.none() | st.binary(max_size=80),
    st.integers(0, 2**40),
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=100)), max_size=3),
)


@given(st.lists(RECORDS, max_size=6))
def test_it_takes_what_aiokafkas_takes(records: list[Any]) -> None:
    theirs = pytest.importorskip("aiokafka.producer.message_accumulator", reason="aiokafka is not installed")
    mine, other = BatchBuilder(250), theirs.BatchBuilder(250, 0)
    for key, value, timestamp, headers in records:
        told, expected = (
            batch.append(key=key, value=value, timestamp=timestamp, headers=headers) for batch in (mine, other)
        )
        assert (told and told[:3]) == (expected and (expected.offset, expected.size, expected.timestamp))
    assert (mine.size(), mine.record_count(), mine.closed()) == (other.size(), other.record_count(), other.closed())
