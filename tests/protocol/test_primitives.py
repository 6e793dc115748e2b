from __future__ import annotations

import array
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import SchemaException
from aioproducer.protocol.primitives import (
    MAX_LENGTH,
    ZERO_UUID,
    own_tagged_fields,
    read_uvarint,
    record_buffers,
    reject_length,
    to_uuid,
    write_tagged_fields,
    write_uvarint,
)

UVARINTS = {
    0: "00",
    1: "01",
    127: "7f",
    128: "8001",
    300: "ac02",
    16383: "ff7f",
    16384: "808001",
    2**28 - 1: "ffffff7f",
    2**28: "8080808001",
    MAX_LENGTH: "ffffffff07",
}


@pytest.mark.parametrize(("value", "encoded"), UVARINTS.items())
def test_uvarint(value: int, encoded: str) -> None:
    out = bytearray()
    write_uvarint(out, value)
    assert out.hex() == encoded
    assert read_uvarint(b"\xff" + out + b"\xff", 1) == (value, 1 + len(out))


@given(st.integers(0, MAX_LENGTH))
def test_any_uvarint(value: int) -> None:
    out = bytearray()
    write_uvarint(out, value)
    assert read_uvarint(memoryview(out), 0) == (value, len(out))


def test_uvarint_longer_than_needed_is_read_as_by_kafka() -> None:
    assert read_uvarint(b"\x81\x80\x80\x80\x00", 0) == (1, 5)


@pytest.mark.parametrize("encoded", ["ffffffff08", "ffffffff7f", "ffffffffff", "ffffffffffffffff7f", "808080808000"])
def test_uvarint_overflow(encoded: str) -> None:
    with pytest.raises(SchemaException, match="overflows 31 bits"):
        read_uvarint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["", "80", "ffff", "ffffffff"])
def test_uvarint_cut_short(encoded: str) -> None:
    with pytest.raises(IndexError):
        read_uvarint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("value", [-1, MAX_LENGTH + 1])
def test_uvarint_out_of_range(value: int) -> None:
    with pytest.raises(SchemaException, match="does not fit"):
        write_uvarint(bytearray(), value)


def test_to_uuid() -> None:
    value = UUID("12345678-9abc-def0-1234-56789abcdef0")
    assert to_uuid(value.bytes) == value
    assert to_uuid(value.bytes) is to_uuid(value.bytes)
    assert to_uuid(bytes(16)) == ZERO_UUID


@pytest.mark.parametrize(
    ("length", "left", "least", "message"),
    [
        (-1, 10, 1, "null where it is not allowed"),
        (-2, 10, 1, "negative length -2"),
        (4, 10, 3, "4 times 3 bytes or more announced, 10 bytes left"),
        (40_000, 50_000, 1, "a string of 40000 bytes, 32767 are allowed"),
    ],
)
def test_reject_length(length: int, left: int, least: int, message: str) -> None:
    with pytest.raises(SchemaException, match=message):
        reject_length(length, left, least)


def test_record_buffers_are_the_given_ones() -> None:
    data = b"abc"
    (buffer,), size = record_buffers(data)
    assert (buffer is data, size) == (True, 3)
    buffers, size = record_buffers((data, bytearray(b"de"), memoryview(b"f"), memoryview(array.array("i", [1, 2]))))
    assert buffers[0] is data
    assert [len(buffer) for buffer in buffers] == [3, 2, 1, 8]
    assert size == 14
    assert record_buffers([]) == ([], 0)


def test_tagged_fields_are_written_in_order() -> None:
    out = bytearray(b"-")
    write_tagged_fields(out, {300: b"z", 0: b"", 5: bytearray(b"xy")})
    assert out == b"-\x03\x00\x00\x05\x02xy\xac\x02\x01z"


def test_own_tagged_fields() -> None:
    unknown = {7: b"x"}
    own = own_tagged_fields(unknown, (0, 1))
    assert own == unknown
    assert own is not unknown
    with pytest.raises(SchemaException, match="tagged field 1 is declared"):
        own_tagged_fields({1: b"x"}, (0, 1))
