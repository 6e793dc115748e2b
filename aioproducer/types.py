"""Public types: keys and values, the record to send, and what describes topics, partitions, offsets and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

Data = bytes | bytearray | memoryview
"""A key or value that needs no serializer."""

# The type variables of keys and values. Their defaults are only for type checkers: Python has them from 3.13 on.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", contravariant=True, default=Data)
    V = TypeVar("V", contravariant=True, default=Data)
    RecordKey = TypeVar("RecordKey", covariant=True, default=Any)
    RecordValue = TypeVar("RecordValue", covariant=True, default=Any)
    D = TypeVar("D", contravariant=True, default=Any)
else:
    from typing import TypeVar

    K = TypeVar("K", contravariant=True)
    """What a producer takes as keys, besides None."""
    V = TypeVar("V", contravariant=True)
    """What a producer takes as values, besides None."""
    RecordKey = TypeVar("RecordKey", covariant=True)
    """The type of a record's key."""
    RecordValue = TypeVar("RecordValue", covariant=True)
    """The type of a record's value."""
    D = TypeVar("D", contravariant=True)
    """What a serializer takes."""

Headers = Sequence[tuple[str, bytes | None]]
"""Record headers in order: names may repeat, a value may be ``None`` (Kafka's record format v2)."""


class TopicPartition(NamedTuple):
    """A topic and one of its partitions."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAndMetadata(NamedTuple):
    """What a group commits for a partition: the offset of the next record to read, and a text of its own."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
    """Of the last record read; -1 for unknown."""


class ConsumerGroupMetadata(NamedTuple):
    """A consumer's membership in its group, as the consumer knows it; only the id if it is not a member (KIP-447)."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class TimestampType(Enum):
    """Who set a record's timestamp (topic config ``message.timestamp.type``)."""

    CREATE_TIME = 0
    """The producer, or the code that called it."""
    LOG_APPEND_TIME = 1
    """The broker, when it appended the batch."""


class ProducerRecord(NamedTuple, Generic[RecordKey, RecordValue]):
    """One record to send. ``timestamp_ms`` counts from the epoch in UTC; ``None`` means now.

    Immutable; interceptors make a changed copy with ``record._replace(headers=…)``.
    """

    topic: str
    value: RecordValue = None  # type: ignore[assignment]  # whose type is not None then, but Any
    key: RecordKey = None  # type: ignore[assignment]
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Headers | None = None


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What a part of the time before a time-out was spent on: ``cause``, in words or as the name of Kafka's error, and
    ``count``, how often it occurred."""

    cause: str
    seconds: float
    count: int


class PartitionInfo(NamedTuple):
    """A partition as the cluster's metadata describes it; ``leader`` is -1 while there is none."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]


class TopicPartitions(tuple[PartitionInfo, ...]):
    """All partitions of a topic, by index."""

    @cached_property
    def available(self) -> tuple[PartitionInfo, ...]:
        """Those that have a leader."""
        return tuple(info for info in self if info.leader >= 0)
