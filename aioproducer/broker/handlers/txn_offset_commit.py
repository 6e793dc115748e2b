"""TxnOffsetCommit: a group's offsets, which count when the transaction is committed.

Versions 0 to 5. Since version 5 the group need not be added to the transaction first (KIP-890). Who says to be a member
of the group has to be one (KIP-447).
"""

from __future__ import annotations

from aioproducer.broker.committed_offset import OffsetAndMetadata
from aioproducer.broker.context import BrokerContext
from aioproducer.broker.coordination import check_coordinator, fencing_code
from aioproducer.broker.request import Request
from aioproducer.error_code import ErrorCode
from aioproducer.errors import ApiException
from aioproducer.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 5)

_IMPLICIT_VERSION = 5
_NEVER = VERSIONS.high + 1


def handle(context: BrokerContext, request: Request, message: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    code = _commit(context, request.header.api_version, message)
    topics = []
    for topic in message.topics:
        exists = topic.name in context.state.topics
        partitions = [
            TxnOffsetCommitResponsePartition(
                partition.partition_index,
                code if code or exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
            for partition in topic.partitions
        ]
        topics.append(TxnOffsetCommitResponseTopic(topic.name, partitions))
    return TxnOffsetCommitResponse(topics=topics)


def _commit(context: BrokerContext, version: int, message: TxnOffsetCommitRequest) -> ErrorCode:
    identity = message.producer_id, message.producer_epoch
    group = message.group_id
    transactions = context.transactions
    try:
        check_coordinator(context, group)
        context.groups.check_transactional_commit(
            group, message.member_id, message.group_instance_id, message.generation_id
        )
        if version >= _IMPLICIT_VERSION:
            transactions.add_group(message.transactional_id, identity, group)
        else:
            transactions.check_group(message.transactional_id, identity, group)
    except ApiException as error:
        # Whoever commits offsets knows a newer producer by this name, in every version.
        return fencing_code(error, version, _NEVER)
    offsets = {
        (topic.name, partition.partition_index): OffsetAndMetadata.of(partition)
        for topic in message.topics
        if topic.name in context.state.topics
        for partition in topic.partitions
    }
    transactions.offsets.commit_in_transaction(message.producer_id, group, offsets)
    return ErrorCode.NONE
