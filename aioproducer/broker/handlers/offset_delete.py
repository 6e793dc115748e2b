"""OffsetDelete: forget committed offsets of a group (KIP-496).

Version 0. Offsets of topics that members of the group have subscribed to are kept.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_group
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException, GroupIdNotFoundException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 0)

_PARTITIONS_AT_ONCE = 100


def handle(context: BrokerContext, request: Request, message: OffsetDeleteRequest) -> Steps[OffsetDeleteResponse]:
    groups, group_id = context.groups, message.group_id
    access = Access.of(context, request)
    try:
        access.check(AclOperation.DELETE, ResourceType.GROUP, group_id)
        check_group(context, group_id)
        if not groups.is_known(group_id):
            raise GroupIdNotFoundException(f"there is no group {group_id!r}")
    except ApiException as error:
        return OffsetDeleteResponse(error_code=error.code)
    response = OffsetDeleteResponse()
    count = 0
    for topic in message.topics:
        answers: list[OffsetDeleteResponsePartition] = []
        response.topics.append(OffsetDeleteResponseTopic(topic.name, answers))
        for index in (partition.partition_index for partition in topic.partitions):
            if count % _PARTITIONS_AT_ONCE == 0:
                yield
                subscribed = groups.group(group_id).subscribed_topics()
            count += 1
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
    return response
