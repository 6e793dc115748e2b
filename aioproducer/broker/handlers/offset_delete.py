"""OffsetDelete: forget committed offsets of a group (KIP-496).

Version 0. Offsets of topics that members of the group have subscribed to are kept.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.error_code import ErrorCode
from aioproducer.errors import ApiException, GroupIdNotFoundException, InvalidGroupIdException
from aioproducer.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 0)


def handle(context: BrokerContext, request: Request, message: OffsetDeleteRequest) -> OffsetDeleteResponse:
    groups, group_id = context.groups, message.group_id
    access = Access.of(context, request)
    try:
        access.check(AclOperation.DELETE, ResourceType.GROUP, group_id)
        check_coordinator(context, group_id)
        if not group_id:
            raise InvalidGroupIdException("the group id is empty")
        if not groups.is_known(group_id):
            raise GroupIdNotFoundException(f"there is no group {group_id!r}")
    except ApiException as error:
        return OffsetDeleteResponse(error_code=error.code)
    subscribed = groups.group(group_id).subscribed_topics()
    topics = []
    for topic in message.topics:
        answers = []
        for index in (partition.partition_index for partition in topic.partitions):
            code = ErrorCode.NONE
            if not access.may_topic(AclOperation.READ, topic.name):
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif context.state.find_partition(topic.name, index) is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif subscribed is None or topic.name in subscribed:
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                groups.offsets.forget(group_id, [(topic.name, index)])
            answers.append(OffsetDeleteResponsePartition(index, code))
        topics.append(OffsetDeleteResponseTopic(topic.name, answers))
    return OffsetDeleteResponse(topics=topics)
