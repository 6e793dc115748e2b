"""Offsets of a group as a part of a transaction: AddOffsetsToTxn and TxnOffsetCommit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aioproducer.producer.coordinators import GROUP
from aioproducer.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from aioproducer.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from aioproducer.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from aioproducer.producer.sequences import ProducerIdAndEpoch
    from aioproducer.producer.transaction_manager import TransactionManager

_LAST_FIRST_PROTOCOL_VERSION = 4


async def send_offsets(
    manager: TransactionManager,
    identity: ProducerIdAndEpoch,
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
    group: ConsumerGroupMetadata,
    *,
    second_protocol: bool,
) -> None:
    """Asks both coordinators, and returns when the offsets are a part of the transaction."""
    if not second_protocol:
        await manager.ask(
            AddOffsetsToTxnRequest(manager.transactional_id, *identity, group.group_id),
            AddOffsetsToTxnResponse,
            lambda response: [response.error_code],
        )
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
        coordinator=(GROUP, group.group_id),
        at_most=None if second_protocol else _LAST_FIRST_PROTOCOL_VERSION,
    )


def _topics(offsets: Mapping[TopicPartition, OffsetAndMetadata | int]) -> list[TxnOffsetCommitRequestTopic]:
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for (topic, partition), given in offsets.items():
        offset = OffsetAndMetadata(given) if isinstance(given, int) else given
        topics.setdefault(topic, TxnOffsetCommitRequestTopic(topic)).partitions.append(
            TxnOffsetCommitRequestPartition(partition, offset.offset, offset.leader_epoch, offset.metadata)
        )
    return list(topics.values())
