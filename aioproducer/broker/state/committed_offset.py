"""An offset as a group commits it for a partition."""

from __future__ import annotations

from typing import NamedTuple, Protocol

TopicPartitionKey = tuple[str, int]

NEVER = -1


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
    committed_ms: int
    """When, in Unix time."""
    expires_ms: int = NEVER
    """When it expires, if the client gave it a retention time, which overrides the broker's; ``NEVER`` otherwise."""

    @staticmethod
    def of(told: CommittedPartition, now_ms: int, retention_ms: int = NEVER) -> OffsetAndMetadata:
        expires_ms = NEVER if retention_ms == NEVER else now_ms + retention_ms
        metadata = told.committed_metadata or ""
        return OffsetAndMetadata(told.committed_offset, told.committed_leader_epoch, metadata, now_ms, expires_ms)
