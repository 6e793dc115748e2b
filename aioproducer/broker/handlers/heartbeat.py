"""Heartbeat: a member of a group is still there.

Versions 0 to 4.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_group
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 4)


def handle(context: BrokerContext, request: Request, message: HeartbeatRequest) -> HeartbeatResponse:
    try:
        Access.of(context, request).check(AclOperation.READ, ResourceType.GROUP, message.group_id)
        check_group(context, message.group_id)
        context.groups.heartbeat(message.group_id, message.generation_id, message.member_id, message.group_instance_id)
        return HeartbeatResponse()
    except ApiException as error:
        return HeartbeatResponse(error_code=error.code)
