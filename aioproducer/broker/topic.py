"""Topics and their partitions, as all nodes of the embedded cluster see them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from aioproducer.broker.broker_config import TopicConfig
from aioproducer.broker.partition_log import PartitionLog
from aioproducer.errors import InvalidTopicException

NO_LEADER = -1
MAX_NAME_LENGTH = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def validate_topic_name(name: str) -> None:
    """Raises :class:`InvalidTopicException` for a name that Kafka refuses (``Topic.validate``)."""
    if not _LEGAL_NAME.fullmatch(name) or name in (".", "..") or len(name) > MAX_NAME_LENGTH:
        raise InvalidTopicException(
            f"topic name {name[: MAX_NAME_LENGTH + 1]!r} is not allowed: it must be 1 to {MAX_NAME_LENGTH} letters, "
            "digits, '.', '_' and '-', and neither '.' nor '..'"
        )


@dataclass(slots=True, eq=False)
class Partition:
    """One partition: who leads it, who has replicas, and its log, which all replicas share."""

    topic: str
    index: int
    replicas: tuple[int, ...]
    log: PartitionLog
    leader: int = NO_LEADER
    leader_epoch: int = 0
    watchers: set[Callable[[Partition], object]] = field(default_factory=set)
    """Called when records were appended, the leader changed or the topic was deleted, with this."""

    def elect(self, leader: int) -> None:
        """Makes ``leader`` the leader, in a new epoch."""
        self.leader = leader
        self.leader_epoch += 1
        self.notify()

    def notify(self) -> None:
        for watcher in tuple(self.watchers):
            watcher(self)

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


@dataclass(slots=True, eq=False)
class Topic:
    """A topic. ``configs`` are its own, as text; ``config`` is what they amount to on a node that has none of its own.
    The log of a partition has what they amount to on its leader."""

    name: str
    id: UUID
    partitions: list[Partition]
    config: TopicConfig
    configs: Mapping[str, str]
    node_configs: Mapping[int, TopicConfig] = field(default_factory=dict)
    """What they amount to on the nodes that have configs of their own."""

    def config_on(self, node_id: int) -> TopicConfig:
        return self.node_configs.get(node_id, self.config)

    def partition(self, index: int) -> Partition | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None
