"""Records that are copied from batch to batch, against the same records as objects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.records.record_writer import MAX_RECORD_OVERHEAD, RecordWriter, record_size_upper_bound
from aioproducer.records.written_records import WrittenRecords

deltas = st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 9000)
data = st.none() | st.binary(max_size=140) | st.integers(8100, 8250).map(bytes)
headers = st.none() | st.lists(st.tuples(st.text(max_size=40), st.none() | st.binary(max_size=140)), max_size=3)
records = st.lists(st.tuples(deltas, deltas, data, data, headers), min_size=1, max_size=12)


@given(records, st.integers(0, 2**31 - 1000), st.integers(0, 2**31 - 1000))
def test_copies_are_what_the_records_would_be(written: list[Any], first: int, first_copy: int) -> None:
    originals, copies, expected = RecordWriter(), RecordWriter(), RecordWriter()
    for index, (delta, other, *record) in enumerate(written):
        originals.append(first + index, delta, *record)
        expected.append(first_copy + index, other, *record)
    walk = WrittenRecords(originals.freeze())
    for index, (_, other, key, value, some_headers) in enumerate(written):
        if index:
            walk.next()
        key_size, value_size = (-1 if one is None else len(one) for one in (key, value))
        assert MAX_RECORD_OVERHEAD + walk.rest == record_size_upper_bound(key_size, value_size, some_headers)
        walk.write_to(copies, first_copy + index, other)
    assert copies.freeze() == expected.freeze()


def test_nothing_comes_after_the_last() -> None:
    writer = RecordWriter()
    writer.append(0, 0, None, b"v", None)
    walk = WrittenRecords(writer.freeze())
    with pytest.raises(IndexError):
        walk.next()
