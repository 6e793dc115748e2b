"""Topics and their partitions, as all nodes of the embedded cluster see them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.log.leader_epochs import EpochEndOffset
from aioproducer.broker.log.partition_log import PartitionLog
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


def plain_name(name: str) -> str:
    """The name of a topic in metrics, where '.' and '_' are the same: Kafka refuses a topic whose plain name another
    topic has (``Topic.hasCollision``)."""
    return name.replace(".", "_")


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. ``-1`` partitions or replicas means the broker's default; ``assignments`` (for each partition
    the nodes of its replicas, the first one leads) excludes both."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[Sequence[int]] = ()
    configs: Mapping[str, str] | None = None


class HeldReplica(NamedTuple):
    """A replica that was stopped from copying: the start and end of its own log, and whether it counts as in sync."""

    log_end_offset: int
    log_start_offset: int
    in_sync: bool


@dataclass(slots=True, eq=False)
class Partition:
    """One partition: its leader, its replicas, and its log, which all replicas share except those in ``held``."""

    topic: str
    index: int
    replicas: tuple[int, ...]
    log: PartitionLog
    leader: int = NO_LEADER
    leader_epoch: int = 0
    held: dict[int, HeldReplica] = field(default_factory=dict)
    """By node; none of them leads."""
    _watchers: dict[Callable[[Partition], object], None] = field(default_factory=dict)

    def elect(self, leader: int) -> None:
        """Makes ``leader`` the leader, in a new epoch."""
        self.leader = leader
        self.leader_epoch += 1
        self.held.pop(leader, None)
        self.notify()

    def end_offset_of(self, leader_epoch: int) -> EpochEndOffset:
        """The end offset of an epoch's records."""
        return self.log.leader_epochs.end_offset_of(leader_epoch, self.leader_epoch, self.log.log_end_offset)

    # replication

    @property
    def min_in_sync_replicas(self) -> int:
        """How many replicas must be in sync for acks=all; as in Kafka at most all replicas."""
        return min(self.log.config.min_insync_replicas, len(self.replicas))

    @property
    def low_watermark(self) -> int:
        """The lowest log start offset of all replicas."""
        held = [self.held[node].log_start_offset for node in self.replicas if node in self.held]
        return min(held, default=self.log.log_start_offset)

    def in_sync_replicas(self, is_alive: Callable[[int], bool]) -> list[int]:
        """The replicas on live nodes, without held ones that have left the in-sync replicas."""
        held = self.held
        return [node for node in self.replicas if is_alive(node) and (node not in held or held[node].in_sync)]

    def replicate(self, in_sync: Sequence[int]) -> None:
        """Moves the high watermark to the offset up to which all of these have copied the log. It does not move while
        there are too few of them (KIP-966)."""
        if len(in_sync) < self.min_in_sync_replicas:
            self.log.replicated_to = self.log.high_watermark
        else:
            held = [self.held[node].log_end_offset for node in in_sync if node in self.held]
            self.log.replicated_to = min(held, default=None)
        self.notify()

    # watchers

    def watch(self, watcher: Callable[[Partition], object]) -> None:
        """Has ``watcher`` called with this partition after records were appended or replicated, after the leader has
        changed, and after the topic was deleted."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Callable[[Partition], object]) -> None:
        self._watchers.pop(watcher, None)

    def notify(self) -> None:
        for watcher in tuple(self._watchers):
            watcher(self)

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


@dataclass(slots=True, eq=False)
class Topic:
    """A topic. ``configs`` are its own configs as text, ``config`` the effective ones on a node without configs of its
    own. The log of a partition has those that are effective on its leader."""

    name: str
    id: UUID
    partitions: list[Partition]
    config: TopicConfig
    configs: Mapping[str, str]
    node_configs: Mapping[int, TopicConfig] = field(default_factory=dict)
    """The effective configs on the nodes that have configs of their own."""

    def config_on(self, node_id: int) -> TopicConfig:
        return self.node_configs.get(node_id, self.config)

    def partition(self, index: int) -> Partition | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None
