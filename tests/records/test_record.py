"""Record is a plain value."""

from __future__ import annotations

import pickle

import pytest

from aioproducer.records.record import Record


def test_is_a_value() -> None:
    record = Record(offset=5, timestamp_ms=1_700_000_000_000, key=None, value=b"v", headers=(("h", None),))
    assert record == Record(5, 1_700_000_000_000, None, b"v", (("h", None),))
    assert record != record._replace(key=b"")
    assert pickle.loads(pickle.dumps(record)) == record
    with pytest.raises(AttributeError):
        record.offset = 6  # type: ignore[misc]
