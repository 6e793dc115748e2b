"""The result of ``create_batch()``: records put together by hand, up to a size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, SupportsInt, final

from aioproducer.compat.aiokafka.errors import illegal_argument
from aioproducer.types import Headers

Serializer = Callable[[Any], Any] | None

HEADER_SIZE: Final = 61
"""Bytes of a record batch before its first record (record format v2)."""


class AppendedRecord(NamedTuple):
    """What ``append()`` returns for a record."""

    offset: int
    """Within the batch."""
    size: int
    """Bytes that it adds to the batch."""
    timestamp: int
    """Milliseconds since the epoch."""

    @property
    def crc(self) -> None:
        """None: since record format v2, records have no checksum of their own."""


_new: Final = tuple.__new__  # see structs.py

BatchRecord = tuple[bytes | None, bytes | None, int, Headers | None]
"""A serialized record: key, value, timestamp in milliseconds, headers. A class of its own would double the cost of
:meth:`BatchBuilder.append`."""


@final
class BatchBuilder:
    """Takes records until the next one would make it larger than ``batch_size`` bytes, as aiokafka's does."""

    def __init__(
        self, batch_size: int, *, key_serializer: Serializer = None, value_serializer: Serializer = None
    ) -> None:
        self.records: list[BatchRecord] = []
        self._batch_size = batch_size
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._size = HEADER_SIZE
        self._first_timestamp = 0
        self._closed = False

    def append(
        self,
        *,
        timestamp: Any,
        key: Any,
        value: Any,
        headers: Iterable[Any] | None = (),
    ) -> AppendedRecord | None:
        """Adds a record; None, and the batch is closed, if it is full. The first record may be of any size.

        ``timestamp`` is in milliseconds since the epoch, its fraction is dropped; None means now. Raises TypeError for
        a key or value that is not bytes after serialization, and IllegalArgumentError for a timestamp before the epoch.
        ``headers`` are pairs of a str and bytes or None.
        """
        if self._closed:
            return None
        key_bytes = _bytes("key", key if self._key_serializer is None else self._key_serializer(key))
        value_bytes = _bytes("value", value if self._value_serializer is None else self._value_serializer(value))
        if timestamp is None:
            timestamp = int(time.time() * 1000)
        elif type(timestamp) is not int:
            timestamp = whole_milliseconds(timestamp)
        if timestamp < 0:
            raise illegal_argument(f"the timestamp is {timestamp}; it must be from 0 on, or None")
        pairs = _checked(headers) if headers else None
        count = len(self.records)
        if count == 0:
            self._first_timestamp = timestamp
        size = _size_in_batch(key_bytes, value_bytes, pairs, timestamp - self._first_timestamp, count)
        if count > 0 and self._size + size > self._batch_size:
            self._closed = True
            return None
        self.records.append((key_bytes, value_bytes, timestamp, pairs))
        self._size += size
        return _new(AppendedRecord, (count, size, timestamp))

    def close(self) -> None:
        """No more records; ``send_batch`` closes a batch, too."""
        self._closed = True

    def closed(self) -> bool:
        """Whether it takes no more records."""
        return self._closed

    def size(self) -> int:
        """Bytes, uncompressed."""
        return self._size

    def record_count(self) -> int:
        """The number of records."""
        return len(self.records)


def as_pairs(headers: Iterable[Any]) -> Headers:
    """Headers as this package takes them, from any iterable of pairs."""
    if type(headers) is list:
        for pair in headers:
            if type(pair) is not tuple:
                break
        else:
            return headers
    return _copied(headers)


def whole_milliseconds(timestamp: object) -> int:
    """A timestamp without its fraction: aiokafka takes any number, such as ``time.time() * 1000``."""
    if not isinstance(timestamp, SupportsInt):
        found = type(timestamp).__name__
        raise TypeError(f"the timestamp is of type {found}; it must be a number of milliseconds, or None")
    return int(timestamp)


def _copied(headers: Iterable[Any]) -> list[tuple[Any, Any]]:
    if headers and isinstance(headers, Mapping | str | bytes):  # short keys might pass for pairs
        found = type(headers).__name__
        raise TypeError(f"the headers are of type {found}; they must be a list of pairs, of a str and bytes or None")
    return [(name, data) for name, data in headers]


def _checked(headers: Iterable[Any]) -> Headers:
    """A copy of the headers, in this package's form."""
    pairs = _copied(headers)
    for name, data in pairs:
        if not isinstance(name, str) or not (data is None or isinstance(data, bytes)):
            raise TypeError(f"a header is {(name, data)!r:.100}; it must be a str, and bytes or None")
    return pairs


def _bytes(what: str, data: object) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    found = type(data).__name__
    raise TypeError(f"the {what} is of type {found}; it must be bytes, or the producer needs a {what}_serializer")


def _size_in_batch(
    key: bytes | None, value: bytes | None, headers: Headers | None, timestamp_delta: int, offset: int
) -> int:
    """Bytes of a record in record format v2, with its length before it."""
    body = 1 + _varint_size(timestamp_delta) + _varint_size(offset) + _sized(key) + _sized(value)  # 1: attributes
    if headers is None:
        body += 1
    else:
        body += _varint_size(len(headers))
        for name, data in headers:
            body += _sized(name.encode()) + _sized(data)
    return _varint_size(body) + body


def _sized(data: bytes | None) -> int:
    return 1 if data is None else _varint_size(len(data)) + len(data)


def _varint_size(number: int) -> int:
    """Bytes of a zigzag varint."""
    if -64 <= number < 64:
        return 1
    if -8192 <= number < 8192:
        return 2
    zigzag = number << 1 if number >= 0 else (-number << 1) - 1
    return (zigzag.bit_length() + 6) // 7
