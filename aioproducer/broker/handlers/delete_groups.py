"""DeleteGroups: delete groups without members, with their offsets.

Versions 0 to 2.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 2)


def handle(context: BrokerContext, request: Request, message: DeleteGroupsRequest) -> DeleteGroupsResponse:
    access = Access.of(context, request)
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id, _delete(context, access, group_id)) for group_id in message.groups_names
        ]
    )


def _delete(context: BrokerContext, access: Access, group_id: str) -> ErrorCode:
    try:
        access.check(AclOperation.DELETE, ResourceType.GROUP, group_id)
        check_coordinator(context, group_id)
        context.groups.delete(group_id)
        return ErrorCode.NONE
    except ApiException as error:
        return error.code
