"""Offsets of a group as a part of a transaction: AddOffsetsToTxn and TxnOffsetCommit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aioproducer.errors import IllegalArgumentException
from aioproducer.net.coordinators import GROUP
from aioproducer.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from aioproducer.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from aioproducer.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from aioproducer.producer.transaction_manager import TransactionManager

_LAST_FIRST_PROTOCOL_VERSION = 4


Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]


def check(offsets: Offsets, group: ConsumerGroupMetadata) -> None:
    """IllegalArgumentException unless it is a group, of a member if it tells of a generation, and all are offsets."""
    if not isinstance(group, ConsumerGroupMetadata):
        raise IllegalArgumentException(f"the group is a {type(group).__name__}, no ConsumerGroupMetadata and no str")
    if not group.group_id:
        raise IllegalArgumentException("the group id is empty")
    if group.generation_id > 0 and not group.member_id:
        raise IllegalArgumentException(
            f"{group} is of generation {group.generation_id}, but without a member id: pass what the consumer tells"
        )
    for (topic, partition), given in offsets.items():
        offset = given.offset if isinstance(given, OffsetAndMetadata) else given
        if not isinstance(offset, int):
            raise IllegalArgumentException(f"the offset of {topic}-{partition} is a {type(offset).__name__}, no int")
        if offset < 0:
            raise IllegalArgumentException(f"offset {offset} of {topic}-{partition} is negative")


async def send_offsets(
    manager: TransactionManager,
    offsets: Offsets,
    group: ConsumerGroupMetadata,
    second_protocol: bool,
) -> None:
    """Asks both coordinators, and returns when the offsets are a part of the transaction."""
    identity = manager.identity
    if not second_protocol:
        await manager.ask(
            AddOffsetsToTxnRequest(manager.transactional_id, *identity, group.group_id),
            AddOffsetsToTxnResponse,
            lambda response: [response.error_code],
        )
    manager.started()
    request = TxnOffsetCommitRequest(
        manager.transactional_id,
        group.group_id,
        *identity,
        group.generation_id,
        group.member_id,
        group.group_instance_id,
        _topics(offsets),
    )
    await manager.ask(
        request,
        TxnOffsetCommitResponse,
        lambda response: [partition.error_code for topic in response.topics for partition in topic.partitions],
        None if second_protocol else _LAST_FIRST_PROTOCOL_VERSION,
        coordinator=(GROUP, group.group_id),
    )


def _topics(offsets: Offsets) -> list[TxnOffsetCommitRequestTopic]:
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for (topic, partition), given in offsets.items():
        offset = OffsetAndMetadata(given) if isinstance(given, int) else given
        topics.setdefault(topic, TxnOffsetCommitRequestTopic(topic)).partitions.append(
            TxnOffsetCommitRequestPartition(partition, offset.offset, offset.leader_epoch, offset.metadata)
        )
    return list(topics.values())
