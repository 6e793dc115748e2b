from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import IllegalArgumentException
from aioproducer.producer.bulk.columns import READ_AHEAD_ROWS, Columns


def read_all(columns: Columns) -> list[Any]:
    read: list[Any] = []
    while (rows := columns.read()) is not None:
        assert rows.first == len(read)
        read += [rows.record(at) for at in range(len(rows.values))]
    assert columns.count == len(read)
    return read


@given(st.lists(st.tuples(st.binary(), st.none() | st.binary(), st.integers()), max_size=3000), st.booleans())
def test_columns_are_read_as_they_were_given(records: list[tuple[bytes, bytes | None, int]], lists: bool) -> None:
    make: Any = list if lists else iter
    columns = Columns(
        make([value for value, _, _ in records]),
        keys=make([key for _, key, _ in records]),
        partitions=None,
        timestamps_ms=make([timestamp for _, _, timestamp in records]),
        headers=None,
    )
    assert read_all(columns) == [(value, key, None, timestamp, None) for value, key, timestamp in records]
    assert columns.broken is None


def test_little_is_read_ahead_of_large_values() -> None:
    given = iter([b"v" * 100_000] * 100)
    columns = Columns(given)
    while columns.read() is not None:
        pass
    assert columns.count == 100
    reads = 0
    columns = Columns(iter([b"v" * 100_000] * 100))
    while (rows := columns.read()) is not None:
        reads += 1
        assert reads == 1 or len(rows.values) == 1
    columns = Columns(iter([b"v"] * 10 * READ_AHEAD_ROWS))
    sizes = []
    while (rows := columns.read()) is not None:
        sizes.append(len(rows.values))
    assert max(sizes) == READ_AHEAD_ROWS


def test_lists_of_different_lengths_are_refused_before_anything_is_read() -> None:
    with pytest.raises(IllegalArgumentException, match="values has 3, keys has 2, headers has 3: each needs one"):
        Columns([b"v"] * 3, keys=[b"k"] * 2, partitions=None, headers=[None] * 3)


@pytest.mark.parametrize(("values", "keys", "ended"), [(5, 3, "keys"), (3, 5, "values"), (0, 2, "values")])
def test_a_generator_that_ends_too_soon_raises_after_its_records(values: int, keys: int, ended: str) -> None:
    columns = Columns((b"v" for _ in range(values)), keys=(b"k" for _ in range(keys)))
    assert len(read_all(columns)) == min(values, keys)
    assert isinstance(columns.broken, IllegalArgumentException)
    assert str(columns.broken) == f"{ended} ended after {min(values, keys)} records, before the other iterables"
    assert columns.read() is None


def test_an_error_of_an_iterable_is_kept_until_the_records_before_it_were_read() -> None:
    def values() -> Iterator[bytes]:
        yield from (b"1", b"2")
        raise LookupError("no third")

    columns = Columns(values(), keys=[b"k"] * 9)
    assert [record[:2] for record in read_all(columns)] == [(b"1", b"k"), (b"2", b"k")]
    assert repr(columns.broken) == "LookupError('no third')"


async def asynchronous() -> AsyncIterator[bytes]:
    yield b"v"


@pytest.mark.parametrize("given", [b"bytes", "str", bytearray(b"x"), {"a": 1}, 5, None])
def test_one_value_is_not_taken_for_many(given: Any) -> None:
    with pytest.raises(IllegalArgumentException, match=f"values is of type {type(given).__name__}; it must be a list"):
        Columns(given)


def test_asynchronous_iterables_are_refused_with_what_to_do() -> None:
    with pytest.raises(IllegalArgumentException, match=r"keys is asynchronous: collect some records"):
        Columns([b"v"], keys=asynchronous())  # type: ignore[arg-type]
