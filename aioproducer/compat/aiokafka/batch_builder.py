"""What ``create_batch()`` makes: records put together by hand, up to a size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from aioproducer.types import Headers

Serializer = Callable[[Any], Any] | None

HEADER_SIZE: Final = 61
"""Bytes of a record batch before its first record (record format v2)."""


class AppendedRecord(NamedTuple):
    """What is known of a record as soon as it is in a batch."""

    offset: int
    """Within the batch."""
    size: int
    """Bytes that it adds to the batch."""
    timestamp: int
    """Milliseconds since the epoch."""

    @property
    def crc(self) -> None:
        """Records have none of their own since record format v2."""


class BatchRecord(NamedTuple):
    """A record of a batch, serialized."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers


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
        self._closed = False

    def append(
        self,
        *,
        timestamp: int | None,
        key: Any,
        value: Any,
        headers: Iterable[tuple[str, bytes | None]] | None = (),
    ) -> AppendedRecord | None:
        """Adds a record; None, and the batch is closed, if it is full. The first record may be of any size.

        ``timestamp`` is in milliseconds since the epoch, None is now. TypeError for what is not, or was not serialized
        to, bytes.
        """
        if self._closed:
            return None
        key_bytes = _bytes("key", key if self._key_serializer is None else self._key_serializer(key))
        value_bytes = _bytes("value", value if self._value_serializer is None else self._value_serializer(value))
        if timestamp is None:
            timestamp = int(time.time() * 1000)
        elif type(timestamp) is not int:
            raise TypeError(f"the timestamp is of type {type(timestamp).__name__}; it must be an int, in milliseconds")
        first = self.records[0].timestamp_ms if self.records else timestamp
        record = BatchRecord(key_bytes, value_bytes, timestamp, tuple(headers or ()))
        size = _size_in_batch(record, timestamp - first, len(self.records))
        if self.records and self._size + size > self._batch_size:
            self.close()
            return None
        self.records.append(record)
        self._size += size
        return AppendedRecord(len(self.records) - 1, size, timestamp)

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


def as_pairs(headers: Iterable[tuple[str, bytes | None]]) -> Headers:
    """Headers, which aiokafka takes as any iterable of any pairs, as this package takes them."""
    if type(headers) is list:
        for pair in headers:
            if type(pair) is not tuple:
                break
        else:
            return headers
    return [(name, data) for name, data in headers]


def _bytes(what: str, data: object) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    found = type(data).__name__
    raise TypeError(f"the {what} is of type {found}; it must be bytes, or the producer needs a {what}_serializer")


def _size_in_batch(record: BatchRecord, timestamp_delta: int, offset: int) -> int:
    """Bytes of a record in record format v2, with its length before it."""
    body = 1 + _varint_size(timestamp_delta) + _varint_size(offset)  # 1: attributes
    body += _sized(record.key) + _sized(record.value) + _varint_size(len(record.headers))
    body += sum(_sized(name.encode()) + _sized(value) for name, value in record.headers)
    return _varint_size(body) + body


def _sized(data: bytes | None) -> int:
    return 1 if data is None else _varint_size(len(data)) + len(data)


def _varint_size(number: int) -> int:
    zigzag = number << 1 if number >= 0 else (-number << 1) - 1
    return max(1, (zigzag.bit_length() + 6) // 7)
