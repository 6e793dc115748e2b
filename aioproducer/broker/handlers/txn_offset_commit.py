"""TxnOffsetCommit: a group's offsets, which count when the transaction is committed.

Versions 0 to 5. Since version 5 the group need not be added to the transaction first (KIP-890). Who says to be a member
of the group has to be one (KIP-447).
"""

from __future__ import annotations

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_group, commit_code, fencing_code
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.committed_offset import OffsetAndMetadata, TopicPartitionKey
from aioproducer.errors import ApiException, InvalidTxnStateException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 5)

_ABORTABLE_VERSION = 4
_IMPLICIT_VERSION = 5
_NEVER = VERSIONS.high + 1
_PARTITIONS_AT_ONCE = 100
_WITHOUT_COORDINATOR = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""What is wrong with an offset before its group is looked at."""


def handle(context: BrokerContext, request: Request, message: TxnOffsetCommitRequest) -> Steps[TxnOffsetCommitResponse]:
    topics = context.state.topics
    access = Access.of(context, request)
    unauthorized = _unauthorized(access, message)
    if unauthorized:
        return _refused(message, unauthorized)
    now_ms = context.clock.time_ms()
    offsets: dict[TopicPartitionKey, OffsetAndMetadata] = {}
    known: list[TxnOffsetCommitResponsePartition] = []
    response = TxnOffsetCommitResponse()
    count = 0
    for topic in message.topics:
        answers: list[TxnOffsetCommitResponsePartition] = []
        response.topics.append(TxnOffsetCommitResponseTopic(topic.name, answers))
        for partition in topic.partitions:
            code = commit_code(context, access, topic.name, topics.get(topic.name), partition)
            answer = TxnOffsetCommitResponsePartition(partition.partition_index, code)
            answers.append(answer)
            if not code:
                offsets[topic.name, partition.partition_index] = OffsetAndMetadata.of(partition, now_ms)
            if code not in _WITHOUT_COORDINATOR:
                known.append(answer)
            count += 1
            if count % _PARTITIONS_AT_ONCE == 0:
                yield
    # At once from here on: the transaction may have ended between two slices.
    refused = _refusal(context, request.header.api_version, message) if known else ErrorCode.NONE
    if refused:
        for answer in known:
            answer.error_code = refused
    elif offsets:
        context.transactions.offsets.commit_in_transaction(message.producer_id, message.group_id, offsets)
    return response


def _unauthorized(access: Access, message: TxnOffsetCommitRequest) -> ErrorCode:
    if not access.may_transactional_id(AclOperation.WRITE, message.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not access.may_group(AclOperation.READ, message.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _refused(message: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [TxnOffsetCommitResponsePartition(partition.partition_index, code) for partition in topic.partitions],
            )
            for topic in message.topics
        ]
    )


def _refusal(context: BrokerContext, version: int, message: TxnOffsetCommitRequest) -> ErrorCode:
    """Why the group takes no offsets from this client, if it does not; makes it a part of the transaction."""
    identity = message.producer_id, message.producer_epoch
    group = message.group_id
    transactions = context.transactions
    try:
        check_group(context, group)
        if version >= _IMPLICIT_VERSION:
            transactions.add_group(message.transactional_id, identity, group)
        else:
            transactions.check_group(message.transactional_id, identity, group)
        context.groups.check_transactional_commit(
            group, message.member_id, message.group_instance_id, message.generation_id
        )
    except InvalidTxnStateException as error:
        return error.code if version < _ABORTABLE_VERSION else ErrorCode.TRANSACTION_ABORTABLE
    except ApiException as error:
        # Clients of this API know a fenced producer by this code, in every version.
        return fencing_code(error, version, _NEVER)
    return ErrorCode.NONE
