"""OffsetCommit: a group's offsets.

Versions 2 to 10. Members commit for their group, and any client for a group without members. Many offsets are committed
in slices: if the group rebalances meanwhile, the rest is refused.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator, commit_code
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.committed_offset import OffsetAndMetadata, TopicPartitionKey
from aioproducer.errors import ApiException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(2, 10)

_TOPIC_ID_VERSION = 10

_PARTITIONS_AT_ONCE = 100


def handle(context: BrokerContext, request: Request, message: OffsetCommitRequest) -> Steps[OffsetCommitResponse]:
    access = Access.of(context, request)
    if not access.may_group(AclOperation.READ, message.group_id):
        return _refused(message, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    now_ms = context.clock.time_ms()
    by_id = request.header.api_version >= _TOPIC_ID_VERSION
    state, group = context.state, context.groups.offsets
    offsets: dict[TopicPartitionKey, OffsetAndMetadata] = {}
    refused = _refusal(context, message)
    response = OffsetCommitResponse()
    count = 0
    for wanted in message.topics:
        topic = state.topic_by_id(wanted.topic_id) if by_id else state.topics.get(wanted.name)
        answers: list[OffsetCommitResponsePartition] = []
        response.topics.append(OffsetCommitResponseTopic(wanted.name, wanted.topic_id, answers))
        for partition in wanted.partitions:
            count += 1
            if count % _PARTITIONS_AT_ONCE == 0:
                group.commit(message.group_id, offsets)
                offsets = {}
                yield
                refused = _refusal(context, message)
                topic = state.topic_by_id(wanted.topic_id) if by_id else state.topics.get(wanted.name)
            if topic is None and by_id:
                code = ErrorCode.UNKNOWN_TOPIC_ID
            else:
                name = wanted.name if topic is None else topic.name
                code = commit_code(context, access, name, topic, partition, refused)
            if topic is not None and not code:
                offset = OffsetAndMetadata.of(partition, now_ms, message.retention_time_ms)
                offsets[topic.name, partition.partition_index] = offset
            answers.append(OffsetCommitResponsePartition(partition.partition_index, code))
    group.commit(message.group_id, offsets)
    return response


def _refusal(context: BrokerContext, message: OffsetCommitRequest) -> ErrorCode:
    """Why the group takes no offsets from this client, if it does not."""
    try:
        check_coordinator(context, message.group_id)
        context.groups.check_commit(
            message.group_id, message.member_id, message.group_instance_id, message.generation_id_or_member_epoch
        )
    except ApiException as error:
        return error.code
    return ErrorCode.NONE


def _refused(message: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [OffsetCommitResponsePartition(partition.partition_index, code) for partition in topic.partitions],
            )
            for topic in message.topics
        ]
    )
