"""An offset as a group commits it for a partition."""

from __future__ import annotations

from typing import NamedTuple, Protocol

TopicPartitionKey = tuple[str, int]


class CommittedPartition(Protocol):
    """A partition as any message that commits offsets names it."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class OffsetAndMetadata(NamedTuple):
    """What a group commits for a partition."""

    offset: int
    leader_epoch: int
    metadata: str

    @staticmethod
    def of(told: CommittedPartition) -> OffsetAndMetadata:
        return OffsetAndMetadata(told.committed_offset, told.committed_leader_epoch, told.committed_metadata or "")
