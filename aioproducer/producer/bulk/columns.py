"""The arguments of ``send_many``, read a little ahead."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sized
from itertools import islice
from typing import Any, Final

from aioproducer.errors import IllegalArgumentException
from aioproducer.producer.bulk.rows import Rows

READ_AHEAD_BYTES: Final = 128 * 1024
"""About as many bytes of values are read from an iterable before they are appended …"""

READ_AHEAD_ROWS: Final = 2048
"""… and no more records than these."""

_NO_COLUMNS: Final = (str, bytes, bytearray, memoryview, Mapping)
"""Types that are probably one value, passed by mistake for many."""


class Columns:
    """Iterables side by side: their first items make the first record, and so on.

    An error of one is kept in ``broken`` until the records before it were read; so is IllegalArgumentException if one
    ends before the others.
    """

    def __init__(
        self,
        values: Iterable[Any],
        *,
        keys: Iterable[Any] | None = None,
        partitions: Iterable[Any] | None = None,
        timestamps_ms: Iterable[Any] | None = None,
        headers: Iterable[Any] | None = None,
    ) -> None:
        others = {"keys": keys, "partitions": partitions, "timestamps_ms": timestamps_ms, "headers": headers}
        given: dict[str, Any] = {"values": values}
        given.update((name, one) for name, one in others.items() if one is not None)
        self._iterators: dict[str, Iterator[Any]] = {name: _iterator(name, one) for name, one in given.items()}
        sizes = {name: len(one) for name, one in given.items() if isinstance(one, Sized)}
        if len(set(sizes.values())) > 1:
            raise IllegalArgumentException(f"{_counted(sizes)}: each needs one for every record")
        self.count = 0
        """Records read so far."""
        self.broken: Exception | None = None
        self._ahead = 16

    def read(self) -> Rows | None:
        """The next records; None if there are no more."""
        if self.broken is not None:
            return None
        errors: list[Exception] = []
        columns = {name: self._read(iterator, errors) for name, iterator in self._iterators.items()}
        sizes = {name: len(column) for name, column in columns.items()}
        count = min(sizes.values())
        if errors:
            self.broken = errors[0]
        elif len(set(sizes.values())) > 1:
            ended = " and ".join(name for name, size in sizes.items() if size == count)
            self.broken = IllegalArgumentException(
                f"{ended} ended after {self.count + count} records, before the other iterables"
            )
        if not count:
            return None
        for column in columns.values():
            del column[count:]
        rows = Rows(
            self.count,
            columns["values"],
            columns.get("keys"),
            columns.get("partitions"),
            columns.get("timestamps_ms"),
            columns.get("headers"),
        )
        self.count += count
        per_row = rows.value_bytes() // count + 1
        self._ahead = max(1, min(READ_AHEAD_ROWS, 4 * self._ahead, READ_AHEAD_BYTES // per_row))
        return rows

    def _read(self, iterator: Iterator[Any], errors: list[Exception]) -> list[Any]:
        column: list[Any] = []
        try:
            column.extend(islice(iterator, self._ahead))
        except Exception as error:
            errors.append(error)
        return column


def _iterator(name: str, given: Any) -> Iterator[Any]:
    if isinstance(given, AsyncIterable):
        raise IllegalArgumentException(
            f"{name} is asynchronous: collect some records, and send_many() each such portion"
        )
    if isinstance(given, _NO_COLUMNS) or not isinstance(given, Iterable):
        raise IllegalArgumentException(
            f"{name} is of type {type(given).__name__}; it must be a list or other iterable, one for each record"
        )
    return iter(given)


def _counted(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} has {size}" for name, size in sizes.items())
