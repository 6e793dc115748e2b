"""DescribeGroups: groups, their states and their members.

Versions 0 to 6. Without an authorizer every operation is allowed, as in Kafka. A group that is named twice is described
once; Kafka describes it twice.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.coordinators.classic_group import GroupState
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 6)

_NOT_FOUND_VERSION = 6


def handle(context: BrokerContext, request: Request, message: DescribeGroupsRequest) -> Steps[DescribeGroupsResponse]:
    version = request.header.api_version
    access = Access.of(context, request)
    groups = []
    for group_id in dict.fromkeys(message.groups):
        group = _describe(context, access, group_id, version)
        if message.include_authorized_operations and not group.error_code:
            group.authorized_operations = access.operations(ResourceType.GROUP, group_id)
        groups.append(group)
        yield
    return DescribeGroupsResponse(groups=groups)


def _describe(context: BrokerContext, access: Access, group_id: str, version: int) -> DescribedGroup:
    described = DescribedGroup(ErrorCode.NONE, group_id=group_id, group_state=GroupState.DEAD.value)
    try:
        access.check(AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        check_coordinator(context, group_id)
    except ApiException as error:
        described.error_code = error.code
        return described
    if not context.groups.is_known(group_id):
        if version >= _NOT_FOUND_VERSION:
            described.error_code, described.error_message = (
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"there is no group {group_id!r}",
            )
        return described
    group = context.groups.group(group_id)
    protocol = (group.protocol or "") if group.state is GroupState.STABLE else ""
    described.group_state = group.state.value
    described.protocol_type, described.protocol_data = group.protocol_type, protocol
    described.members = [
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
    return described
