"""SyncGroup: the leader hands in what is assigned to each member, the others ask for theirs and wait for it.

Versions 0 to 5.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.coordinators.classic_group import ClassicGroup, Member
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_group
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException, InconsistentGroupProtocolException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 5)

_PROTOCOL_VERSION = 5


def handle(context: BrokerContext, request: Request, message: SyncGroupRequest) -> None:
    def answer(group: ClassicGroup | None, member: Member | None, code: ErrorCode) -> None:
        if request.abandoned:
            return
        if group is None or member is None:
            request.respond(SyncGroupResponse(error_code=code))
        else:
            request.respond(
                SyncGroupResponse(
                    protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
                )
            )

    try:
        if request.header.api_version >= _PROTOCOL_VERSION and None in (message.protocol_type, message.protocol_name):
            raise InconsistentGroupProtocolException("since version 5 a member says what protocol it has agreed on")
        Access.of(context, request).check(AclOperation.READ, ResourceType.GROUP, message.group_id)
        check_group(context, message.group_id)
    except ApiException as error:
        answer(None, None, error.code)
        return
    context.groups.sync(
        message.group_id,
        message.generation_id,
        message.member_id,
        message.group_instance_id,
        (message.protocol_type, message.protocol_name),
        {one.member_id: bytes(one.assignment) for one in message.assignments},
        answer,
    )
