"""Records that fill a batch exactly, and bytes that do not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.record_extents import fill_exactly


def varint(size: int) -> bytes:
    """A size as a record has it: zigzag, seven bits a byte."""
    zigzag, parts = size * 2 if size >= 0 else -2 * size - 1, []
    while zigzag > 0x7F:
        parts.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*parts, zigzag])


SIZES = st.lists(st.sampled_from([6, 7, 63, 64, 8191, 8192, 1_048_575, 1_048_576]), max_size=6)


@given(SIZES, st.binary(max_size=5), st.integers(-3, 3), st.integers(-2, 2))
def test_so_many_records_and_nothing_else(sizes: list[int], before: bytes, more: int, cut: int) -> None:
    body = b"".join(varint(size) + bytes(size) for size in sizes)
    data = before + body
    assert fill_exactly(data, len(before), len(sizes))
    count = len(sizes) + more
    if count >= 0:
        assert fill_exactly(data, len(before), count) == (more == 0)
    changed = data[:cut] if cut < 0 < len(body) + cut else data + bytes(max(cut, 0))
    assert fill_exactly(changed, len(before), len(sizes)) == (changed == data)


@given(st.binary(max_size=40), st.integers(0, 40), st.integers(0, 2**31 - 1))
def test_no_bytes_upset_it(data: bytes, start: int, count: int) -> None:
    naive, pos = start <= len(data), start
    for _ in range(min(count, 100)):
        size, shift, more = 0, 0, True
        while naive and more:
            if pos >= len(data) or shift > 28:
                naive = False
                break
            more = data[pos] > 0x7F
            size |= (data[pos] & 0x7F) << shift
            pos, shift = pos + 1, shift + 7
        naive = naive and size % 2 == 0 and size >= 12
        pos += size >> 1
    assert fill_exactly(data, start, count) == (naive and pos == len(data))


def test_sizes_that_cannot_be() -> None:
    assert not fill_exactly(varint(-1) + bytes(20), 0, 1), "negative"
    assert not fill_exactly(varint(5) + bytes(5), 0, 1), "less than a record has"
    assert not fill_exactly(b"\xff" * 5 + b"\x00" * 20, 0, 1), "more than five bytes"
    assert not fill_exactly(varint(2**30) + bytes(100), 0, 1), "beyond the end"
    assert fill_exactly(b"", 0, 0)
