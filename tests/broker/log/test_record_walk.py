"""Records that fill a batch exactly, and bytes that do not: compared with a slow and obvious reader."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.log.record_walk import MOST_NAMED, RecordWalk
from aioproducer.records.record_writer import RecordWriter

NULL = -1


def varint(number: int, least: int = 1) -> bytes:
    """Zigzag, seven bits a byte; of ``least`` bytes even if fewer would do."""
    zigzag = number * 2 if number >= 0 else -2 * number - 1
    parts: list[int] = []
    while zigzag > 0x7F or len(parts) + 1 < least:
        parts.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*parts, zigzag])


class Fields(NamedTuple):
    """What a record has; sizes stand for key, value and headers."""

    delta: int = 0
    key: int = NULL
    value: int = NULL
    headers: tuple[tuple[int, int], ...] = ()

    def encoded(self, offset: int) -> bytes:
        parts = [b"\0", varint(self.delta), varint(offset)]
        parts += [varint(self.key), bytes(max(self.key, 0)), varint(self.value), bytes(max(self.value, 0))]
        parts.append(varint(len(self.headers)))
        for key, value in self.headers:
            parts += [varint(key), bytes(key), varint(value), bytes(max(value, 0))]
        body = b"".join(parts)
        return varint(len(body)) + body


SIZE = st.one_of(st.integers(0, 3), st.sampled_from([63, 64, 65, 127, 8191, 8192]))
OR_NULL = st.one_of(st.just(NULL), SIZE)
DELTA = st.one_of(st.integers(-70, 70), st.integers(-(2**62) + 1, 2**62 - 1))
RECORDS = st.lists(
    st.builds(Fields, DELTA, OR_NULL, OR_NULL, st.lists(st.tuples(SIZE, OR_NULL), max_size=3).map(tuple)), max_size=5
)


def problem_of(data: bytes, count: int, start: int = 0) -> str:
    walk = RecordWalk(data, start, count)
    assert walk.advance(2**40)
    return walk.problem


@given(RECORDS, st.binary(max_size=5), st.integers(1, 3))
def test_records_in_steps_of_any_size(records: list[Fields], before: bytes, step: int) -> None:
    data = before + b"".join(record.encoded(offset) for offset, record in enumerate(records))
    walk = RecordWalk(data, len(before), len(records))
    steps = 1
    while not walk.advance(step):
        steps += 1
    assert walk.problem == ""
    assert steps == max(1, -(-len(records) // step))
    deltas = [record.delta for record in records]
    assert not records or (walk.min_timestamp_delta, walk.max_timestamp_delta) == (min(deltas), max(deltas))


def test_the_records_without_a_key() -> None:
    writer = RecordWriter()
    for number in range(MOST_NAMED + 10):
        writer.append(number, 0, b"k" if number % 3 == 1 else None, b"v", None)
    walk = RecordWalk(writer.freeze(), 0, MOST_NAMED + 10)
    while not walk.advance(7):
        pass
    assert walk.keyless == [number for number in range(MOST_NAMED + 10) if number % 3 != 1]
    writer = RecordWriter()
    for number in range(MOST_NAMED + 10):
        writer.append(number, 0, None, b"v", None)
    walk = RecordWalk(writer.freeze(), 0, MOST_NAMED + 10)
    assert walk.advance(2**40)
    assert walk.keyless == list(range(MOST_NAMED))


@given(RECORDS, DELTA)
def test_the_smallest_timestamp_but_for_records_without_one(records: list[Fields], absent: int) -> None:
    records = [*records, Fields(absent)]
    walk = RecordWalk(b"".join(record.encoded(at) for at, record in enumerate(records)), 0, len(records), absent)
    assert walk.advance(2**40)
    assert walk.min_timestamp_delta == min((one.delta for one in records if one.delta != absent), default=2**62)


@given(RECORDS, DELTA, DELTA, DELTA, st.integers(1, 3))
def test_records_with_timestamps_out_of_bounds_are_found(
    records: list[Fields], absent: int, least: int, most: int, step: int
) -> None:
    data = b"".join(record.encoded(offset) for offset, record in enumerate(records))
    walk = RecordWalk(data, 0, len(records), absent, least=least, most=most)
    while not walk.advance(step):
        pass
    allowed = [least <= record.delta <= most or record.delta == absent for record in records]
    assert walk.misdated == [index for index, one in enumerate(allowed) if not one]


@given(RECORDS, DELTA, st.integers(0, 5), st.integers(1, 3))
def test_the_first_with_a_timestamp(records: list[Fields], wanted: int, first: int, step: int) -> None:
    data = b"".join(record.encoded(offset) for offset, record in enumerate(records))
    walk = RecordWalk(data, 0, len(records), wanted=wanted, first=first)
    while not walk.advance(step):
        pass
    later = [index for index, record in enumerate(records) if record.delta >= wanted and index >= first]
    assert walk.found == min(later, default=-1)
    assert not later or walk.found_delta == records[walk.found].delta


@given(RECORDS.filter(len), st.data())
def test_one_byte_more_or_less_is_noticed(records: list[Fields], data: st.DataObject) -> None:
    whole = b"".join(record.encoded(offset) for offset, record in enumerate(records))
    assert problem_of(whole + b"\0", len(records)) == "something follows the last record"
    assert problem_of(whole[:-1], len(records))
    assert problem_of(whole, len(records) + 1)
    assert problem_of(whole, len(records) - 1)
    cut = data.draw(st.integers(0, len(whole) - 1))
    assert problem_of(whole[:cut] + whole[cut + 1 :], len(records)) or naive(whole[:cut] + whole[cut + 1 :])


class Bad(Exception):
    pass


class Naive:
    """Reads one number, or a number of bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            raise Bad
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, most: int) -> int:
        raw = 0
        for place in range(most):
            (byte,) = self.take(1)
            raw |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return (raw >> 1) ^ -(raw & 1)
        raise Bad

    def sized(self, *, nullable: bool) -> None:
        size = self.number(5)
        if size != NULL or not nullable:
            self.take(size)


def naive(data: bytes) -> int | None:
    """How many records the data is; None if it is none."""
    reader, count = Naive(data), 0
    try:
        while reader.at < len(data):
            record = Naive(reader.take(reader.number(5)))
            if record.take(1) != b"\0":
                return None
            record.number(9)
            if record.number(5) != count:
                return None
            record.sized(nullable=True)
            record.sized(nullable=True)
            headers = record.number(5)
            if headers < 0:
                return None
            for _ in range(headers):
                record.sized(nullable=False)
                record.sized(nullable=True)
            if record.at < len(record.data):
                return None
            count += 1
    except Bad:
        return None
    return count


# Bytes that are nearly records: small numbers, and sometimes one that never ends.
NEARLY = st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4, 12, 14, 16, 18, 0x80, 0xFF]), max_size=24).map(bytes)


@given(st.one_of(NEARLY, st.binary(max_size=40)), st.integers(0, 4))
def test_the_walk_agrees_with_the_naive_reader_on_any_bytes(data: bytes, count: int) -> None:
    assert (problem_of(data, count) == "") == (naive(data) == count)


@given(RECORDS.filter(len), st.data())
def test_one_byte_changed(records: list[Fields], data: st.DataObject) -> None:
    whole = bytearray(b"".join(record.encoded(offset) for offset, record in enumerate(records)))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    assert (problem_of(bytes(whole), len(records)) == "") == (naive(bytes(whole)) == len(records))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"\0" + b"\xff" * 5, "it ends within its timestamp"),
        (b"\x80\0\0\1\1\0", "its attributes are not 0"),
        (b"\0\0\0\3\1\0", "the length of its key is negative"),
        (b"\0\0\0\1\3\0", "the length of its value is negative"),
        (b"\0\0\0\1\1\1", "the number of its headers cannot be"),
        (b"\0\0\0\1\1\x02", "the number of its headers cannot be"),
        (b"\0\0\0\1\1\0\0", "its fields do not fill it exactly"),
        (b"\0\0\x02\1\1\0", "its offset is not the next one"),
        (b"\0\0\0\1\1\x02\0\xff\xff", "its fields do not fill it exactly"),
        (b"\0\0\0\x20\1\0", "it ends within its key"),
        (b"\0\0\0\1\x20\0", "it ends within its value"),
    ],
)
def test_the_problem_of_a_malformed_record(body: bytes, problem: str) -> None:
    assert problem_of(varint(len(body)) + body, 1) == f"record 0: {problem}"


def test_sizes_that_cannot_be() -> None:
    for size in (varint(-1), varint(5), b"\xff" * 5, varint(2**30), b"\x8c\x80\x80\x80\x80\x00"):
        assert problem_of(size + bytes(20), 1) == "record 0: its size cannot be"
    assert problem_of(b"", 1) == "record 0: it is not there"
    assert problem_of(b"", 0) == ""
