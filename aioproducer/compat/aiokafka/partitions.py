"""Which partition a record goes to, as far as that is known before it joins a batch. Rules only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aioproducer import PartitionInfo
from aioproducer.compat.aiokafka.aiokafka_module import aiokafka_module
from aioproducer.configs.producer_config import ProducerConfig

Partitioner = Callable[[bytes | None, Sequence[int], Sequence[int]], int]
"""Called with the key's bytes, all partitions, and those that have a leader."""


def partition_of(
    infos: Sequence[PartitionInfo],
    partition: int | None,
    key: bytes | None,
    partitioner: Partitioner | None,
    config: ProducerConfig,
) -> int | None:
    """The named partition, or that of the partitioner, or that of the key; None if the producer decides later.

    AssertionError if there is no such partition.
    """
    everyone = [info.partition for info in infos]
    if partition is not None:
        if partition not in everyone:
            topic = infos[0].topic
            raise AssertionError(f"topic {topic!r} has no partition {partition!r}: it has 0 to {len(everyone) - 1}")
        return partition
    chooser = partitioner or (None if key is None else _chooser_by_key(config))
    return None if chooser is None else chooser(key, everyone, available(infos))


def available(infos: Sequence[PartitionInfo]) -> list[int]:
    """The partitions that have a leader."""
    return [info.partition for info in infos if info.leader >= 0]


def _chooser_by_key(config: ProducerConfig) -> Partitioner | None:
    """aiokafka's own partitioner, which chooses as the producer will; None if that is configured to choose otherwise.

    Only instrumentation and users' classes ask, so aiokafka is installed where this matters.
    """
    aiokafkas = aiokafka_module("partitioner")
    if aiokafkas is None or config.partitioner_class is not None or config.partitioner_ignore_keys:
        return None
    partitioner: Partitioner = aiokafkas.DefaultPartitioner()
    return partitioner
