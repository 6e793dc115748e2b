"""An offset that a group has committed for a partition."""

from __future__ import annotations

from typing import NamedTuple, Protocol

TopicPartitionKey = tuple[str, int]

NO_EXPIRY = -1


class CommittedPartition(Protocol):
    """A partition in any message that commits offsets."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class OffsetAndMetadata(NamedTuple):
    """The offset that a group has committed for a partition, with its metadata."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    """The time of the commit, in Unix time."""
    expires_ms: int = NO_EXPIRY
    """When the offset expires, if the client gave a retention time that overrides the broker's; else ``NO_EXPIRY``."""

    @staticmethod
    def of(partition: CommittedPartition, now_ms: int, retention_ms: int = NO_EXPIRY) -> OffsetAndMetadata:
        expires_ms = NO_EXPIRY if retention_ms == NO_EXPIRY else now_ms + retention_ms
        metadata = partition.committed_metadata or ""
        return OffsetAndMetadata(
            partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms, expires_ms
        )
