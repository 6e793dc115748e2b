"""OffsetCommit: a group's offsets.

Versions 2 to 10. Members of a group commit for it, or anybody for one that has none.
"""

from __future__ import annotations

from aioproducer.broker.committed_offset import OffsetAndMetadata
from aioproducer.broker.context import BrokerContext
from aioproducer.broker.coordination import check_coordinator
from aioproducer.broker.request import Request
from aioproducer.broker.topic import Topic
from aioproducer.error_code import ErrorCode
from aioproducer.errors import ApiException
from aioproducer.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(2, 10)

_TOPIC_ID_VERSION = 10


def handle(context: BrokerContext, request: Request, message: OffsetCommitRequest) -> OffsetCommitResponse:
    refused = ErrorCode.NONE
    try:
        check_coordinator(context, message.group_id)
        context.groups.check_commit(
            message.group_id, message.member_id, message.group_instance_id, message.generation_id_or_member_epoch
        )
    except ApiException as error:
        refused = error.code
    by_id = request.header.api_version >= _TOPIC_ID_VERSION
    topics = []
    for wanted in message.topics:
        state = context.state
        topic = state.topic_by_id(wanted.topic_id) if by_id else state.topics.get(wanted.name)
        code = refused
        if topic is None:
            code = refused or (ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif not refused:
            _commit(context, message.group_id, topic, wanted)
        answers = [OffsetCommitResponsePartition(partition.partition_index, code) for partition in wanted.partitions]
        topics.append(OffsetCommitResponseTopic(wanted.name, wanted.topic_id, answers))
    return OffsetCommitResponse(topics=topics)


def _commit(context: BrokerContext, group: str, topic: Topic, wanted: OffsetCommitRequestTopic) -> None:
    context.groups.offsets.commit(
        group,
        {(topic.name, partition.partition_index): OffsetAndMetadata.of(partition) for partition in wanted.partitions},
    )
