"""From where to where partitions are audited: what is in their logs as the audit begins."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from aioproducer.admin import KafkaAdmin
from aioproducer.reader import PartitionReader
from aioproducer.spark.audit.small import small_frame

BOUNDS_SCHEMA: Final = "topic string, partition int, first long, end long"
_AT_ONCE: Final = 32
"""Partitions that are asked for at a time."""


class Bound(NamedTuple):
    """``first`` is the first offset of the partition's log, ``end`` follows the last."""

    topic: str
    partition: int
    first: int
    end: int


async def find_bounds(
    topics: Iterable[str], admin_config: Mapping[str, str], reader_config: Mapping[str, str]
) -> list[Bound]:
    """The bounds of all partitions of the topics; KafkaError, naming topic or partition, if one cannot be had."""
    async with KafkaAdmin.from_config(admin_config) as admin:
        places = [
            (topic, info.partition) for topic in topics for info in (await admin.describe_topic(topic)).partitions
        ]
    few = asyncio.Semaphore(_AT_ONCE)
    others: dict[str, Any] = dict(reader_config)
    servers = others.pop("bootstrap.servers")

    async def find(topic: str, partition: int) -> Bound:
        async with few, PartitionReader(servers, topic, partition, **others) as reader:
            return Bound(topic, partition, await reader.beginning_offset(), await reader.end_offset())

    return list(await asyncio.gather(*(find(*place) for place in places)))


def bounds_frame(spark: SparkSession, bounds: Sequence[Bound]) -> DataFrame:
    """As rules want them."""
    return small_frame(spark, bounds, BOUNDS_SCHEMA)


def starting_offsets(bounds: Iterable[Bound]) -> str:
    """The source's option startingOffsets."""
    return _offsets((bound.topic, bound.partition, bound.first) for bound in bounds)


def ending_offsets(bounds: Iterable[Bound]) -> str:
    """The source's option endingOffsets."""
    return _offsets((bound.topic, bound.partition, bound.end) for bound in bounds)


def _offsets(places: Iterable[tuple[str, int, int]]) -> str:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for topic, partition, offset in places:
        found[topic][str(partition)] = offset
    return json.dumps(found)
