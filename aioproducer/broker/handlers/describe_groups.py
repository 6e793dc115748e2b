"""DescribeGroups: groups, their states and their members.

Versions 0 to 6. Without an authorizer every operation is allowed, as in Kafka.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.coordinators.classic_group import GroupState
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.error_code import ErrorCode
from aioproducer.errors import ApiException
from aioproducer.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 6)

_NOT_FOUND_VERSION = 6


def handle(context: BrokerContext, request: Request, message: DescribeGroupsRequest) -> DescribeGroupsResponse:
    version = request.header.api_version
    access = Access.of(context, request)
    groups = [_describe(context, access, group_id, version) for group_id in message.groups]
    if message.include_authorized_operations:
        for group in (group for group in groups if not group.error_code):
            group.authorized_operations = access.operations(ResourceType.GROUP, group.group_id)
    return DescribeGroupsResponse(groups=groups)


def _describe(context: BrokerContext, access: Access, group_id: str, version: int) -> DescribedGroup:
    told = DescribedGroup(ErrorCode.NONE, group_id=group_id, group_state=GroupState.DEAD.value)
    try:
        access.check(AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        check_coordinator(context, group_id)
    except ApiException as error:
        told.error_code = error.code
        return told
    if not context.groups.is_known(group_id):
        if version >= _NOT_FOUND_VERSION:
            told.error_code, told.error_message = ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}"
        return told
    group = context.groups.group(group_id)
    protocol = (group.protocol or "") if group.state is GroupState.STABLE else ""
    told.group_state = group.state.value
    told.protocol_type, told.protocol_data = group.protocol_type, protocol
    told.members = [
        DescribedGroupMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.metadata(protocol),
            member.assignment,
        )
        for member in group.members.values()
    ]
    return told
