"""LeaveGroup: members leave a group, since version 3 several at once.

Versions 0 to 5.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_group
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 5)

_SEVERAL_VERSION = 3


def handle(context: BrokerContext, request: Request, message: LeaveGroupRequest) -> Steps[LeaveGroupResponse]:
    try:
        Access.of(context, request).check(AclOperation.READ, ResourceType.GROUP, message.group_id)
        check_group(context, message.group_id)
    except ApiException as error:
        return LeaveGroupResponse(error_code=error.code)
    if request.header.api_version < _SEVERAL_VERSION:
        return LeaveGroupResponse(error_code=_leave(context, message.group_id, MemberIdentity(message.member_id)))
    response = LeaveGroupResponse()
    for one in message.members:
        code = _leave(context, message.group_id, one)
        response.members.append(MemberResponse(one.member_id, one.group_instance_id, code))
        yield
    return response


def _leave(context: BrokerContext, group_id: str, member: MemberIdentity) -> ErrorCode:
    try:
        context.groups.leave(group_id, member.member_id, member.group_instance_id)
        return ErrorCode.NONE
    except ApiException as error:
        return error.code
