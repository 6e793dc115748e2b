"""aiokafka's tuples: what a producer's futures end with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aioproducer.compat.aiokafka.aiokafka_module import aiokafka_module


class TopicPartition(NamedTuple):
    """A topic and one of its partitions."""

    topic: str
    partition: int


class RecordMetadata(NamedTuple):
    """Where a record is in the log. ``offset`` is -1 for a duplicate whose offset the broker no longer knows."""

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


# Where aiokafka is installed, its own classes are used: its consumer takes no others.
if not TYPE_CHECKING and (_aiokafka_structs := aiokafka_module("structs")) is not None:
    TopicPartition = _aiokafka_structs.TopicPartition
    RecordMetadata = _aiokafka_structs.RecordMetadata
