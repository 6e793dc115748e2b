"""The bytes before the data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import SerializationException
from aioproducer.schema_registry.wire_format import message_indexes, prefix, read_message_indexes, schema_id_of


@given(st.integers(0, 2**31 - 1), st.binary())
def test_an_id_is_read_as_it_was_written(schema_id: int, data: bytes) -> None:
    assert schema_id_of(prefix(schema_id) + data) == schema_id


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=100), st.binary())
def test_indexes_are_read_as_they_were_written(indexes: list[int], data: bytes) -> None:
    written = prefix(7, indexes)
    assert read_message_indexes(written + data) == (indexes, len(written))


def test_bytes_of_confluents_documentation() -> None:
    """docs.confluent.io, "Wire format": [1, 0] are the count 2 and the indexes, zigzag; [0] is a single zero."""
    assert prefix(100) == b"\x00\x00\x00\x00\x64"
    assert message_indexes([0]) == b"\x00"
    assert message_indexes([1, 0]) == b"\x04\x02\x00"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "0 bytes have no schema id"),
        (b"\x00\x00\x00\x00", "4 bytes have no schema id"),
        (b'{"a":1}', "begins with byte 0x7b .* header, which is not supported"),
        (b"\x00\xff\xff\xff\xff", "the schema id is -1"),
    ],
)
def test_data_without_an_id_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(SerializationException, match=said):
        schema_id_of(data)


@pytest.mark.parametrize(
    "indexes",
    [b"", b"\x80", b"\x04\x02", b"\x01", b"\x02\x01", b"\xff" * 20, message_indexes([0] * 101), b"\xfe\xff\xff\x0f"],
)
def test_broken_indexes(indexes: bytes) -> None:
    with pytest.raises(SerializationException, match="index"):
        read_message_indexes(prefix(1) + indexes)


@given(st.binary(max_size=40))
def test_no_bytes_do_worse_than_a_serialization_exception(data: bytes) -> None:
    try:
        schema_id_of(data)
        indexes, position = read_message_indexes(data)
    except SerializationException:
        return
    assert len(indexes) <= 100
    assert position <= len(data)
