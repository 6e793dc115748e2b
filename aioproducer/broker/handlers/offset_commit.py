"""OffsetCommit: a group's offsets.

Versions 2 to 10. Members of a group commit for it, or anybody for one that has none.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator, commit_code
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.committed_offset import OffsetAndMetadata, TopicPartitionKey
from aioproducer.error_code import ErrorCode
from aioproducer.errors import ApiException
from aioproducer.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(2, 10)

_TOPIC_ID_VERSION = 10


def handle(context: BrokerContext, request: Request, message: OffsetCommitRequest) -> OffsetCommitResponse:
    access = Access.of(context, request)
    if not access.may_group(AclOperation.READ, message.group_id):
        return _refused(message, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused = ErrorCode.NONE
    try:
        check_coordinator(context, message.group_id)
        context.groups.check_commit(
            message.group_id, message.member_id, message.group_instance_id, message.generation_id_or_member_epoch
        )
    except ApiException as error:
        refused = error.code
    now_ms = context.clock.time_ms()
    by_id = request.header.api_version >= _TOPIC_ID_VERSION
    state = context.state
    offsets: dict[TopicPartitionKey, OffsetAndMetadata] = {}
    topics = []
    for wanted in message.topics:
        topic = state.topic_by_id(wanted.topic_id) if by_id else state.topics.get(wanted.name)
        answers = []
        for partition in wanted.partitions:
            if topic is None and by_id:
                code = ErrorCode.UNKNOWN_TOPIC_ID
            else:
                name = wanted.name if topic is None else topic.name
                code = commit_code(context, access, name, topic, partition, refused)
            if topic is not None and not code:
                offset = OffsetAndMetadata.of(partition, now_ms, message.retention_time_ms)
                offsets[topic.name, partition.partition_index] = offset
            answers.append(OffsetCommitResponsePartition(partition.partition_index, code))
        topics.append(OffsetCommitResponseTopic(wanted.name, wanted.topic_id, answers))
    if offsets:
        context.groups.offsets.commit(message.group_id, offsets)
    return OffsetCommitResponse(topics=topics)


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
