"""From where to where partitions are audited: what is in their logs when the audit begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from aioproducer.admin import KafkaAdmin, ListOffsetsResultInfo, OffsetSpec, TopicDescription
from aioproducer.admin.offsets import IsolationLevel
from aioproducer.spark.audit.frames.local_frame import local_frame
from aioproducer.types import TopicPartition

BOUNDS_SCHEMA: Final = "topic string, partition int, first long, end long, stable_end long"


class Bound(NamedTuple):
    """``first`` is the first offset of the partition's log, ``end`` follows the last.

    ``stable_end`` is where a reader of committed records ends: before the first open transaction, or at ``end`` if
    there is none. Everything before it has its outcome before ``end``.
    """

    topic: str
    partition: int
    first: int
    end: int
    stable_end: int

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


async def find_bounds(topics: Iterable[str], admin_config: Mapping[str, str]) -> list[Bound]:
    """The bounds of all partitions of the topics; KafkaError, naming topic or partition, if one cannot be had."""
    async with KafkaAdmin.from_config(admin_config) as admin:
        partitions = await _partitions(admin, topics)
        firsts = await _offsets(admin, partitions, OffsetSpec.earliest(), "read_uncommitted")
        # The stable ends come first: otherwise a transaction that ends meanwhile would seem to end nowhere.
        stable_ends = await _offsets(admin, partitions, OffsetSpec.latest(), "read_committed")
        ends = await _offsets(admin, partitions, OffsetSpec.latest(), "read_uncommitted")
    return [Bound(*place, firsts[place], ends[place], stable_ends[place]) for place in partitions]


async def _partitions(admin: KafkaAdmin, topics: Iterable[str]) -> list[TopicPartition]:
    found = []
    for described in (await admin.describe_topics(dict.fromkeys(topics))).values():
        if not isinstance(described, TopicDescription):
            raise described
        found += [TopicPartition(info.topic, info.partition) for info in described.partitions]
    return found


async def _offsets(
    admin: KafkaAdmin, partitions: Iterable[TopicPartition], spec: OffsetSpec, level: IsolationLevel
) -> dict[TopicPartition, int]:
    offsets = {}
    for place, answer in (await admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=level)).items():
        if not isinstance(answer, ListOffsetsResultInfo):
            raise answer
        offsets[place] = answer.offset
    return offsets


def bounds_frame(spark: SparkSession, bounds: Sequence[Bound]) -> DataFrame:
    """As rules want them."""
    return local_frame(spark, bounds, BOUNDS_SCHEMA)
