"""What is known of the cluster: an immutable snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from aioproducer.error_code import ErrorCode
from aioproducer.net.addresses import Address
from aioproducer.types import PartitionInfo

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


@dataclass(frozen=True, slots=True)
class Cluster:
    """Brokers, and the topics that were asked for. ``errors`` are the topics the brokers gave no metadata for."""

    nodes: Mapping[int, Node] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    errors: Mapping[str, ErrorCode] = field(default_factory=dict)
    controller_id: int = -1
    cluster_id: str | None = None
