"""RecordWriter against the record format, and its two implementations against each other."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioproducer.records import record_writer, record_writer_pure

NATIVE = record_writer.RecordWriter.__module__ == record_writer.__name__
MODULES = [record_writer, record_writer_pure] if NATIVE else [record_writer_pure]

int64 = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-5000, 5000), st.integers(-70, 70))
int32 = st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(0, 300))
data = st.one_of(st.none(), st.binary(max_size=70), st.integers(0, 9000).map(bytes))
headers = st.one_of(
    st.none(), st.lists(st.tuples(st.text(max_size=80), st.none() | st.binary(max_size=80)), max_size=70)
)
record = st.tuples(int32, int64, data, data, headers)


def zigzag_varint(value: int) -> bytes:
    rest = value * 2 if value >= 0 else -value * 2 - 1
    encoded = []
    while rest >= 128:
        encoded.append(rest % 128 + 128)
        rest //= 128
    return bytes([*encoded, rest])


def sized(value: bytes | None) -> bytes:
    return zigzag_varint(-1) if value is None else zigzag_varint(len(value)) + value


def by_the_book(offset_delta: int, timestamp_delta: int, key: Any, value: Any, headers: Any) -> bytes:
    body = b"\0" + zigzag_varint(timestamp_delta) + zigzag_varint(offset_delta) + sized(key) + sized(value)
    body += zigzag_varint(len(headers or ()))
    for name, content in headers or ():
        body += sized(name.encode()) + sized(content)
    return zigzag_varint(len(body)) + body


@pytest.mark.parametrize("module", MODULES)
@settings(max_examples=150)
@given(records=st.lists(record, max_size=5))
def test_writes_the_format(module: Any, records: list[Any]) -> None:
    writer = module.RecordWriter()
    expected = b""
    for each in records:
        writer.append(*each)
        expected += by_the_book(*each)
    assert writer.freeze() == expected
    assert writer.size() == len(expected)


@pytest.mark.parametrize("module", MODULES)
@settings(max_examples=150)
@given(each=record, before=st.binary(max_size=20), after=st.binary(max_size=20), offset_delta=int32, delta=int64)
def test_the_rest_of_a_record_is_written_behind_other_deltas(
    module: Any, each: Any, before: bytes, after: bytes, offset_delta: int, delta: int
) -> None:
    _, _, key, value, some_headers = each
    rest = sized(key) + sized(value) + zigzag_varint(len(some_headers or ()))
    rest += b"".join(sized(name.encode()) + sized(content) for name, content in some_headers or ())
    writer = module.RecordWriter()
    writer.append(*each)
    writer.append_rest(offset_delta, delta, before + rest + after, len(before), len(before + rest))
    assert writer.freeze() == by_the_book(*each) + by_the_book(offset_delta, delta, key, value, some_headers)


@pytest.mark.skipif(not NATIVE, reason="record_writer runs interpreted here: it is the pure twin itself")
@settings(max_examples=300)
@given(records=st.lists(record, max_size=5), key_size=st.integers(-1, 2**31 - 1), value_size=st.integers(-1, 2**31 - 1))
def test_native_and_pure_write_the_same(records: list[Any], key_size: int, value_size: int) -> None:
    native, pure = record_writer.RecordWriter(), record_writer_pure.RecordWriter()
    for each in records:
        native.append(*each)
        pure.append(*each)
        assert record_writer.record_size_upper_bound(
            key_size, value_size, each[4]
        ) == record_writer_pure.record_size_upper_bound(key_size, value_size, each[4])
    assert native.freeze() == pure.freeze()
    assert native.size() == pure.size()


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("bits", range(64))
def test_every_width_of_number(module: Any, bits: int) -> None:
    for value in {2**bits - 1, -(2**bits), 2**bits if bits < 63 else 0, -(2**bits) + 1}:
        assert module.varint_size(value) == len(zigzag_varint(value))
        writer = module.RecordWriter()
        writer.append(0, value, None, None, None)
        assert writer.freeze() == by_the_book(0, value, None, None, None)


@pytest.mark.parametrize("module", MODULES)
@settings(max_examples=150)
@given(each=record)
def test_upper_bound_bounds(module: Any, each: Any) -> None:
    _, _, key, value, headers = each
    bound = module.record_size_upper_bound(
        -1 if key is None else len(key), -1 if value is None else len(value), headers
    )
    writer = module.RecordWriter()
    writer.append(*each)
    assert writer.size() <= bound
    writer.clear()
    writer.append(-(2**31), -(2**63), key, value, headers)
    # the widest deltas leave nothing of the overhead but the length's varint, which it takes to be 5 bytes
    assert bound - 4 <= writer.size() <= bound


@pytest.mark.parametrize("module", MODULES)
def test_none_is_not_empty(module: Any) -> None:
    writer = module.RecordWriter()
    writer.append(0, 0, None, None, None)
    assert writer.freeze() == bytes.fromhex("0c 00 00 00 01 01 00")
    writer.clear()
    writer.append(0, 0, b"", b"", ())
    assert writer.freeze() == bytes.fromhex("0c 00 00 00 00 00 00")


@pytest.mark.parametrize("module", MODULES)
def test_frozen_bytes_stay_when_the_writer_is_used_again(module: Any) -> None:
    writer = module.RecordWriter()
    writer.append(0, 0, b"key", b"first", None)
    frozen = writer.freeze()
    before = bytes(bytearray(frozen))
    writer.clear()
    assert writer.size() == 0
    assert writer.freeze() == b""
    writer.append(0, 0, b"KEY", b"other", [("h", b"x")])
    assert frozen == before
    assert isinstance(frozen, bytes)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(
    "headers",
    [[(b"name", b"x")], [("name", "text")], [("name", 5)], [("name",)], [("ok", b""), None], [("\ud800", b"")]],
)
def test_a_bad_header_writes_nothing(module: Any, headers: Any) -> None:
    writer = module.RecordWriter()
    writer.append(0, 0, None, b"value", [("good", b"header")])
    before = writer.freeze()
    with pytest.raises((TypeError, ValueError, AttributeError)):
        writer.append(1, 0, None, b"value", headers)
    assert writer.freeze() == before
    writer.append(1, 0, None, b"value", [("good", b"header")])
    assert writer.freeze() == before + by_the_book(1, 0, None, b"value", [("good", b"header")])


@pytest.mark.skipif(NATIVE, reason="compiled: librt is there")
def test_interpreted_it_is_the_pure_twin_and_needs_no_librt() -> None:
    program = (
        "import sys; sys.modules['librt'] = sys.modules['librt.strings'] = None\n"
        "from aioproducer.records import record_writer, record_writer_pure\n"
        "assert record_writer.RecordWriter is record_writer_pure.RecordWriter\n"
        "assert record_writer.record_size_upper_bound is record_writer_pure.record_size_upper_bound\n"
        "assert record_writer.varint_size is record_writer_pure.varint_size\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
