"""Records that were in a log and are there no more."""

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
    """Those of the records that have not been deleted: the beginning of a batch may be."""
    start = partition.log.log_start_offset
    return [Found(topic.name, partition.index, record, topic.id) for record in records if record.offset >= start]


class Vanished:
    """Of all partitions of a run."""

    def __init__(self) -> None:
        self.cut_off: list[Found] = []
        """A replica was elected that had not copied them. They may have been acknowledged, and may be sent again."""
        self._retired: dict[tuple[UUID, int], list[Found]] = {}

    def retire(self, found: Iterable[Found]) -> None:
        """These had been read for as long as they were kept: they count as if they were still there."""
        for one in found:
            self._retired.setdefault((one.topic_id, one.partition), []).append(one)

    def whole(self, topic: Topic, partition: Partition) -> list[Found]:
        """The log as it would be if nothing had been deleted from it."""
        there = found_in(topic, partition, partition.log.records())
        return [*self._retired.get((topic.id, partition.index), ()), *there]
