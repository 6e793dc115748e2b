"""aiokafka's tuples: what a producer's futures end with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from aioproducer import RecordMetadata as OwnMetadata
from aioproducer import TimestampType
from aioproducer.compat.aiokafka.aiokafka_module import aiokafka_module


class TopicPartition(NamedTuple):
    """A topic and one of its partitions."""

    topic: str
    partition: int


class RecordMetadata(NamedTuple):
    """Where a record is in the log. ``offset`` is -1 for a duplicate that the broker could only recognise as one."""

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int
    """Milliseconds since the epoch."""
    timestamp_type: int
    """0: the record's own, 1: the broker's, when it appended the batch."""
    log_start_offset: int | None
    """Always None: this package does not keep it."""


# Where aiokafka is installed they are its own, as its consumer takes no others.
if not TYPE_CHECKING and (_theirs := aiokafka_module("structs")) is not None:
    TopicPartition = _theirs.TopicPartition
    RecordMetadata = _theirs.RecordMetadata


# What calling a NamedTuple does, less one call of Python's for each: this is a third of what a record's future costs.
_new: Final = tuple.__new__
_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME


def as_theirs(metadata: OwnMetadata) -> RecordMetadata:
    """This package's metadata as aiokafka's."""
    topic, partition = metadata.topic, metadata.partition
    stamped = 1 if metadata.timestamp_type is _LOG_APPEND_TIME else 0
    where = _new(TopicPartition, (topic, partition))
    return _new(RecordMetadata, (topic, partition, where, metadata.offset, metadata.timestamp_ms, stamped, None))
