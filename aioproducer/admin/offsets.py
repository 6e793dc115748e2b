"""Offsets of partitions: the first, the last, or by time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, Self

from aioproducer.errors import IllegalArgumentException, KafkaError, error_class, error_for
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from aioproducer.types import PartitionInfo, TopicPartition

IsolationLevel = Literal["read_uncommitted", "read_committed"]

_ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
_LATEST, _EARLIEST = -1, -2


class OffsetSpec(NamedTuple):
    """Which offset of a partition: ``OffsetSpec.latest()``. ``timestamp`` is Kafka's code for it (``OffsetSpec``)."""

    timestamp: int

    @classmethod
    def earliest(cls) -> Self:
        """The first offset in the log."""
        return cls(_EARLIEST)

    @classmethod
    def latest(cls) -> Self:
        """The offset after the last record that may be read: with read_committed, the last stable offset."""
        return cls(_LATEST)

    @classmethod
    def for_timestamp(cls, timestamp_ms: int) -> Self:
        """The first offset whose record has this timestamp (ms since 1970) or a later one."""
        if timestamp_ms < 0:
            raise IllegalArgumentException(f"timestamp_ms is {timestamp_ms}; it must be at least 0")
        return cls(timestamp_ms)


class ListOffsetsResultInfo(NamedTuple):
    """What a partition's leader answered."""

    offset: int
    """-1 if no record has the requested timestamp or a later one."""
    timestamp: int
    """The timestamp of that record, in ms since 1970; -1 if none was requested."""
    leader_epoch: int


def offsets_request(
    partitions: Iterable[PartitionInfo],
    specs: Mapping[TopicPartition, OffsetSpec],
    isolation_level: str,
    timeout_ms: int,
) -> ListOffsetsRequest:
    """The request to a node for partitions that it leads."""
    if isolation_level not in _ISOLATION_LEVELS:
        raise IllegalArgumentException(
            f"isolation_level is {isolation_level!r}; it must be {' or '.join(_ISOLATION_LEVELS)}"
        )
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for info in partitions:
        timestamp = specs[TopicPartition(info.topic, info.partition)].timestamp
        topics.setdefault(info.topic, []).append(ListOffsetsPartition(info.partition, info.leader_epoch, timestamp))
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=_ISOLATION_LEVELS.index(isolation_level),
        topics=[ListOffsetsTopic(name=name, partitions=wanted) for name, wanted in topics.items()],
        timeout_ms=timeout_ms,
    )


def offsets_answered(response: ListOffsetsResponse) -> dict[TopicPartition, ListOffsetsResultInfo | KafkaError]:
    """The offsets or errors in an answer, by partition."""
    answers: dict[TopicPartition, ListOffsetsResultInfo | KafkaError] = {}
    for topic in response.topics:
        for result in topic.partitions:
            partition = TopicPartition(topic.name, result.partition_index)
            if result.error_code == ErrorCode.NONE:
                answers[partition] = ListOffsetsResultInfo(result.offset, result.timestamp, result.leader_epoch)
            else:
                text = error_class(result.error_code).__doc__
                answers[partition] = error_for(result.error_code, f"partition {partition}: {text}")
    return answers
