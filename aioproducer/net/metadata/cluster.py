"""An immutable snapshot of the cluster's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from aioproducer.errors import LeaderNotAvailableException, UnknownTopicOrPartitionException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.addresses import Address
from aioproducer.types import PartitionInfo, TopicPartition

NO_TOPIC_ID = UUID(int=0)


class Node(NamedTuple):
    """A broker of the cluster."""

    node_id: int
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic and its partitions, by index; ``topic_id`` is zero where the broker is too old to have one."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionInfo, ...]

    def led(self, partition: int) -> PartitionInfo:
        """The partition, if it has a leader; UnknownTopicOrPartitionException or LeaderNotAvailableException if not."""
        if partition >= len(self.partitions):
            raise UnknownTopicOrPartitionException(
                f"there is no {TopicPartition(self.name, partition)}: "
                f"topic {self.name!r} has partitions 0 to {len(self.partitions) - 1}"
            )
        info = self.partitions[partition]
        if info.leader < 0:
            raise LeaderNotAvailableException(f"{TopicPartition(self.name, partition)} has no leader")
        return info


@dataclass(frozen=True, slots=True)
class Cluster:
    """Brokers, and the requested topics. ``errors`` are the topics the brokers gave no metadata for."""

    nodes: Mapping[int, Node] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    errors: Mapping[str, ErrorCode] = field(default_factory=dict)
    controller_id: int = -1
    cluster_id: str | None = None
