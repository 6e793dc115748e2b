"""Rules for the expiry of unused groups, offsets and transactional ids.

Kafka's ``OffsetExpirationCondition``, and ``shouldExpire`` of its ``TransactionStateManager``. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping

from aioproducer.broker.coordinators.classic_group import ClassicGroup, GroupState
from aioproducer.broker.state.committed_offset import OffsetAndMetadata, TopicPartitionKey
from aioproducer.broker.state.transaction_metadata import TransactionMetadata, TransactionState


def expired_offsets(
    group: ClassicGroup, offsets: Mapping[TopicPartitionKey, OffsetAndMetadata], retention_ms: int, now_ms: int
) -> list[TopicPartitionKey]:
    """The partitions whose committed offsets have expired.

    Retention starts when the last member left. For groups that never had members, and for topics that no member
    consumes any more, it starts with the commit. Nothing expires while the members have no common protocol or are not
    consumers.
    """
    since_ms, consumed = None, set[str]()
    if group.protocol_type:
        if group.state is GroupState.EMPTY:
            since_ms = group.empty_since_ms
        else:
            topics = group.subscribed_topics() if group.state is GroupState.STABLE else None
            if topics is None:
                return []
            consumed = topics
    return [
        partition
        for partition, offset in offsets.items()
        if partition[0] not in consumed and _is_over(offset, since_ms, retention_ms, now_ms)
    ]


def _is_over(offset: OffsetAndMetadata, since_ms: int | None, retention_ms: int, now_ms: int) -> bool:
    if offset.expires_ms >= 0:
        return now_ms >= offset.expires_ms
    return now_ms - (offset.committed_ms if since_ms is None else since_ms) >= retention_ms


_UNUSED = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def is_expired(metadata: TransactionMetadata, expiration_ms: int, now_ms: int) -> bool:
    """Whether a transactional id has expired: it has no open transaction, and has not changed for ``expiration_ms``."""
    return metadata.state in _UNUSED and now_ms - metadata.changed_ms >= expiration_ms
