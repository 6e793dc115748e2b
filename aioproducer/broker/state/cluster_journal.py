"""The interface that receives every change that a cluster must keep."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from aioproducer.acls import AclBinding
    from aioproducer.broker.configs.resource_configs import Owner
    from aioproducer.broker.configs.topic_config import TopicConfig
    from aioproducer.broker.log.batch_store import Batches
    from aioproducer.broker.security.scram_credentials import ScramCredential, ScramMechanism
    from aioproducer.broker.state.committed_offset import OffsetAndMetadata, TopicPartitionKey
    from aioproducer.broker.state.topic import Topic
    from aioproducer.broker.state.transaction_metadata import TransactionMetadata


class Decision(NamedTuple):
    """How a transaction ends, and the offsets of its markers by topic id and index."""

    producer_id: int
    producer_epoch: int
    committed: bool
    now_ms: int
    markers: list[tuple[UUID, int, int]]


class ClusterJournal:
    """Keeps nothing: the journal of a cluster in memory. Unless a method says otherwise, it is called after the change,
    in the same step of the event loop."""

    @property
    def room(self) -> int:
        """How many more logs may change before the next commit begins. Work that changes many waits for room, so that
        a commit, and with it every answer, takes little time."""
        return sys.maxsize

    def when_room(self, callback: Callable[[], object]) -> None:
        """Calls back once there is room, maybe at once."""
        callback()

    def batches(self, topic: str, topic_id: UUID, index: int, config: TopicConfig) -> Batches | None:
        """The store for the log of a new partition; None keeps its batches in memory."""
        return None

    def topic_changed(self, topic: Topic) -> None:
        """A topic was created, or its replicas, partitions or configs have changed."""

    def topic_deleted(self, topic: Topic) -> None: ...

    def leader_elected(self, topic_id: UUID, index: int, leader_epoch: int) -> None: ...

    def broker_configs_changed(self, node: str, configs: Mapping[str, str]) -> None: ...

    def scram_credential_changed(
        self, user: str, mechanism: ScramMechanism, credential: ScramCredential | None
    ) -> None:
        """A credential was set, or deleted (None)."""

    def resource_configs_changed(self, owner: Owner, name: str, configs: Mapping[str, str]) -> None:
        """The configs are about to change to these."""

    def acl_changed(self, binding: AclBinding, is_new: bool) -> None:
        """An ACL is about to be created (``is_new``) or deleted."""

    def producer_id_allocated(self, next_producer_id: int) -> None: ...

    def transaction_changed(self, metadata: TransactionMetadata) -> None: ...

    def transaction_forgotten(self, transactional_id: str) -> None:
        """A transactional id has expired."""

    def transaction_decided(self, decision: Decision) -> None: ...

    def offsets_committed(self, group: str, offsets: Mapping[TopicPartitionKey, OffsetAndMetadata]) -> None: ...

    def offsets_forgotten(self, group: str, partitions: Iterable[TopicPartitionKey]) -> None: ...

    def pending_offsets_changed(
        self, producer_id: int, group: str, offsets: Mapping[TopicPartitionKey, OffsetAndMetadata]
    ) -> None:
        """The offsets that a transaction will commit for a group; empty once it has ended."""


IN_MEMORY = ClusterJournal()
