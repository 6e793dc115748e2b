from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from aioproducer.record_metadata import RecordMetadata
from aioproducer.types import TimestampType

VALUES: tuple[Any, ...] = ("orders", 3, 2**40, 1_700_000_000_000, False, -1, 100)


def test_says_what_the_broker_said() -> None:
    metadata = RecordMetadata(*VALUES)
    assert (metadata.topic, metadata.partition, metadata.offset) == ("orders", 3, 2**40)
    assert (metadata.timestamp_ms, metadata.timestamp_type) == (1_700_000_000_000, TimestampType.CREATE_TIME)
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (-1, 100)
    assert RecordMetadata("t", 0, -1, 0, True, 0, 0).timestamp_type is TimestampType.LOG_APPEND_TIME
    assert repr(metadata) == (
        "RecordMetadata(topic='orders', partition=3, offset=1099511627776, timestamp_ms=1700000000000, "
        "timestamp_type=CREATE_TIME, serialized_key_size=-1, serialized_value_size=100)"
    )


@pytest.mark.parametrize("place", range(len(VALUES)))
def test_is_equal_by_value(place: int) -> None:
    metadata, twin = RecordMetadata(*VALUES), RecordMetadata(*VALUES)
    assert metadata == twin
    assert hash(metadata) == hash(twin)
    changed = list(VALUES)
    changed[place] = "other" if place == 0 else not changed[place] if place == 4 else changed[place] + 1
    assert metadata != RecordMetadata(*changed)
    assert len({metadata, twin, RecordMetadata(*changed)}) == 2
    assert metadata != VALUES


@pytest.mark.parametrize(
    "name",
    ["topic", "partition", "offset", "timestamp_ms", "timestamp_type", "serialized_key_size", "serialized_value_size"],
)
def test_cannot_be_changed(name: str) -> None:
    metadata = RecordMetadata(*VALUES)
    with pytest.raises(AttributeError):
        setattr(metadata, name, 5)
    with pytest.raises((AttributeError, TypeError)):
        delattr(metadata, name)
    assert metadata == RecordMetadata(*VALUES)


def test_can_be_pickled_and_copied() -> None:
    metadata = RecordMetadata(*VALUES)
    assert pickle.loads(pickle.dumps(metadata)) == metadata
    assert copy.copy(metadata) == copy.deepcopy(metadata) == metadata
