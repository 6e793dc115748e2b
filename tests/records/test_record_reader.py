"""Reading records: what the writer wrote comes back, anything else is one error."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioproducer.errors import CorruptRecordException
from aioproducer.records.record import Record
from aioproducer.records.record_reader import read_records
from aioproducer.records.record_writer import RecordWriter

headers = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=5)
records = st.lists(
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.none() | st.binary(), st.none() | st.binary(max_size=300), headers),
    max_size=6,
)


def read(body: bytes, count: int, **changes: Any) -> list[Record]:
    batch: dict[str, Any] = {"base_offset": 100, "last_offset_delta": count - 1, "base_timestamp": 0, **changes}
    return list(read_records(body, count=count, **batch))


def write(*records: tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]) -> bytes:
    writer = RecordWriter()
    for index, record in enumerate(records):
        writer.append(index, *record)
    return writer.freeze()


@given(records=records)
def test_round_trip(records: list[Any]) -> None:
    body = write(*records)
    expected = [
        Record(100 + index, timestamp, key, value, tuple(headers))
        for index, (timestamp, key, value, headers) in enumerate(records)
    ]
    assert read(body, len(records)) == expected
    assert [record.timestamp_ms for record in read(body, len(records), log_append_time=77)] == [77] * len(records)


@settings(max_examples=300)
@given(records=records.filter(bool), data=st.data())
def test_mutations_raise_one_error(records: list[Any], data: st.DataObject) -> None:
    body = bytearray(write(*records))
    count = len(records) + data.draw(st.sampled_from([-1, 0, 0, 0, 1, 2**31 - 1]))
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(body) - 1))
        match data.draw(st.sampled_from(["change", "insert", "delete"])):
            case "change":
                body[place] = data.draw(st.integers(0, 255))
            case "insert":
                body[place:place] = data.draw(st.binary(max_size=12))
            case "delete" if len(body) > 1:
                del body[place]
    try:
        found = read(bytes(body), count)
    except CorruptRecordException:
        pass
    else:
        assert len(found) == count


@settings(max_examples=200)
@given(body=st.binary(max_size=60), count=st.integers(1, 5))
def test_any_bytes_raise_one_error(body: bytes, count: int) -> None:
    with suppress(CorruptRecordException):
        read(body, count)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "runs beyond"),
        ("0c 00 00 00 01 01", "size 6, 5 bytes left"),
        ("01 00 00 00 01 01 00", "size -1, 6 bytes left"),
        ("0e 00 00 00 01 01 00 00", "its fields take 6 bytes, its size says 7"),
        ("0a 00 00 00 01 01 00", "its fields take 6 bytes, its size says 5"),
        ("0c 00 00 00 01 01 00 00", "1 bytes follow the last of 1 records"),
        ("0c 00 00 00 03 01 00", "a length of -2, 2 bytes left"),
        ("0c 00 00 00 01 06 00", "a length of 3, 1 bytes left"),
        ("10 00 00 00 fe ff ff ff 0f", "a length of 2147483647, 0 bytes left"),
        ("0c 00 00 00 01 01 01", "-1 headers in 0 bytes"),
        ("0c 00 00 00 01 01 02", "1 headers in 0 bytes"),
        ("14 00 00 00 01 01 fe ff ff ff 0f", "2147483647 headers in 0 bytes"),
        ("10 00 00 00 01 01 02 01 01", "a header has no name"),
        ("0e 00 00 80 00 01 01 00", ""),  # a varint longer than need be is still that number, as in Java
        ("80 80 80 80 10", "a varint has more than 32 bits"),
        ("80 80 80 80 80 00", "a varint has more than 32 bits"),
        ("ff ff ff ff", "runs beyond"),
        ("1e 00 ff ff ff ff ff ff ff ff ff 02 00 01 01 00", "a varint has more than 64 bits"),
        ("20 00 ff ff ff ff ff ff ff ff ff ff 01 00 01 01 00", "a varint has more than 64 bits"),
        ("0c 00 00 01 01 01 00", "offset delta -1 after -1, the batch's last is 0"),
        ("0c 00 00 02 01 01 00", "offset delta 1 after -1, the batch's last is 0"),
    ],
)
def test_an_error_says_which_part_of_a_record_is_wrong(body: str, message: str) -> None:
    if not message:
        assert len(read(bytes.fromhex(body), 1)) == 1
        return
    with pytest.raises(CorruptRecordException, match=f"^batch at offset 100: .*{message}"):
        read(bytes.fromhex(body), 1)


def test_a_timestamp_beyond_64_bits() -> None:
    body = write((2**63 - 1, None, None, []))
    assert read(body, 1)[0].timestamp_ms == 2**63 - 1
    with pytest.raises(CorruptRecordException, match="record 0 of 1: timestamp 9223372036854775808 does not fit"):
        read(body, 1, base_timestamp=1)


def test_offsets_may_have_gaps_but_must_rise() -> None:
    writer = RecordWriter()
    for delta in (2, 5, 5):
        writer.append(delta, 0, None, None, None)
    body = writer.freeze()
    assert [record.offset for record in read(body[:14], 2, last_offset_delta=7)] == [102, 105]
    with pytest.raises(CorruptRecordException, match="record 2 of 3: offset delta 5 after 5"):
        read(body, 3, last_offset_delta=7)


def test_a_header_name_that_is_no_utf8_does_not_hide_the_record() -> None:
    body = bytes.fromhex("12 00 00 00 01 01 02 02 ff 01")
    assert read(body, 1) == [Record(100, 0, None, None, (("\ufffd", None),))]


def test_no_records() -> None:
    assert read(b"", 0) == []
    with pytest.raises(CorruptRecordException, match="1 bytes follow the last of 0 records"):
        read(b"\0", 0)


def test_a_huge_count_costs_nothing() -> None:
    found = read_records(
        write((0, None, None, [])), count=2**31 - 1, base_offset=0, last_offset_delta=2**31 - 2, base_timestamp=0
    )
    assert next(found).offset == 0
    with pytest.raises(CorruptRecordException, match="record 1 of 2147483647 runs beyond"):
        next(found)
