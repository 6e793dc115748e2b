"""Topics, as the admin client creates and describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from aioproducer.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from aioproducer.protocol.messages.metadata import MetadataResponseTopic
from aioproducer.types import PartitionInfo


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. -1 partitions or replicas mean the broker's default (KIP-464)."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    """Topic configs in Kafka's names: ``{"retention.ms": "3600000"}``."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as the brokers describe it; ``topic_id`` is zero if they are too old to have one."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionInfo, ...]
    is_internal: bool

    @property
    def replication_factor(self) -> int:
        """The replicas of the partition with the fewest."""
        return min((len(partition.replicas) for partition in self.partitions), default=0)


def creatable(topic: NewTopic) -> CreatableTopic:
    """A topic to create, for a request."""
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def description(name: str, answer: MetadataResponseTopic) -> TopicDescription:
    """The description of a topic in a broker's answer."""
    partitions = [
        PartitionInfo(
            name,
            partition.partition_index,
            partition.leader_id,
            partition.leader_epoch,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
        )
        for partition in sorted(answer.partitions, key=lambda partition: partition.partition_index)
    ]
    return TopicDescription(name, answer.topic_id, tuple(partitions), answer.is_internal)
