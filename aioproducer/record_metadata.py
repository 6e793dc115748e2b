"""The broker's acknowledgement of one record."""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64, mypyc_attr

from aioproducer.types import TimestampType

# Looking an enum member up is slow.
_CREATE_TIME: Final = TimestampType.CREATE_TIME
_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME


@final
@mypyc_attr(acyclic=True)
class RecordMetadata:
    """Where a record is in the log.

    ``offset`` is -1 if the broker did not say (``acks=0``, or a duplicate that it only recognised as one).
    ``timestamp_ms`` is the record's own (CREATE_TIME) or the broker's (LOG_APPEND_TIME), in milliseconds since the
    epoch. A serialized size is -1 for ``None``. Immutable, compared by value, and made on demand.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp_ms: int,
        log_append_time: bool,
        serialized_key_size: int,
        serialized_value_size: int,
    ) -> None:
        self._topic = topic
        self._partition: i64 = partition
        self._offset: i64 = offset
        self._timestamp_ms: i64 = timestamp_ms
        self._log_append_time = log_append_time
        self._serialized_key_size: i64 = serialized_key_size
        self._serialized_value_size: i64 = serialized_value_size

    # Properties, because attributes of a compiled class could be assigned to.

    @property
    def topic(self) -> str:
        return self._topic

    @property
    def partition(self) -> int:
        return self._partition

    @property
    def offset(self) -> int:
        """Its place in the partition; -1 if the broker did not say."""
        return self._offset

    @property
    def timestamp_ms(self) -> int:
        return self._timestamp_ms

    @property
    def timestamp_type(self) -> TimestampType:
        return _LOG_APPEND_TIME if self._log_append_time else _CREATE_TIME

    @property
    def serialized_key_size(self) -> int:
        return self._serialized_key_size

    @property
    def serialized_value_size(self) -> int:
        return self._serialized_value_size

    def _fields(self) -> tuple[Any, ...]:
        return (
            self._topic,
            self._partition,
            self._offset,
            self._timestamp_ms,
            self._log_append_time,
            self._serialized_key_size,
            self._serialized_value_size,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordMetadata) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (
            f"RecordMetadata(topic={self._topic!r}, partition={self._partition}, offset={self._offset}, "
            f"timestamp_ms={self._timestamp_ms}, timestamp_type={self.timestamp_type.name}, "
            f"serialized_key_size={self._serialized_key_size}, serialized_value_size={self._serialized_value_size})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (RecordMetadata, self._fields())
