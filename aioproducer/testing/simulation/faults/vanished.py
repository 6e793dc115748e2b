"""Records that were in a log and have been removed from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from aioproducer.broker import Partition, Topic
from aioproducer.records.record import Record


class Found(NamedTuple):
    """A record in a log."""

    topic: str
    partition: int
    record: Record
    topic_id: UUID

    def __repr__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.record.offset}"


def found_in(topic: Topic, partition: Partition, records: Iterable[Record]) -> list[Found]:
    """The records that have not been deleted; a batch may have lost its beginning."""
    start = partition.log.log_start_offset
    return [Found(topic.name, partition.index, record, topic.id) for record in records if record.offset >= start]


class Vanished:
    """The removed records of all partitions of a run."""

    def __init__(self) -> None:
        self.cut_off: list[Found] = []
        """Records that an elected replica lacks. They may have been acknowledged, and may be sent again."""
        self._retired: dict[tuple[UUID, int], list[Found]] = {}

    def retire(self, found: Iterable[Found]) -> None:
        """Keeps records that retention deletes. Consumers may have read them, so they count as present."""
        for one in found:
            self._retired.setdefault((one.topic_id, one.partition), []).append(one)

    def whole(self, topic: Topic, partition: Partition) -> list[Found]:
        """The log with the records that were deleted from it."""
        there = found_in(topic, partition, partition.log.records())
        return [*self._retired.get((topic.id, partition.index), ()), *there]
