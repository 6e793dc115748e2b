"""What aiokafka says of a delivered record, from what this package says of it."""

from __future__ import annotations

from typing import Final

from aioproducer.compat.aiokafka.structs import RecordMetadata, TopicPartition
from aioproducer.record_metadata import RecordMetadata as OwnMetadata
from aioproducer.types import TimestampType

# Faster than calling the NamedTuple, which adds a Python call: that call took a third of a future's cost.
_new: Final = tuple.__new__
_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME


def as_aiokafkas(metadata: OwnMetadata) -> RecordMetadata:
    """This package's metadata as aiokafka's."""
    topic = metadata.topic
    partition = metadata.partition
    stamped = 1 if metadata.timestamp_type is _LOG_APPEND_TIME else 0
    where = _new(TopicPartition, (topic, partition))
    return _new(RecordMetadata, (topic, partition, where, metadata.offset, metadata.timestamp_ms, stamped, None))
