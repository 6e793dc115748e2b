"""ListGroups: the groups that this node coordinates.

Versions 0 to 5. There are classic groups only.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import coordinates
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 5)

_TYPE = "classic"


_GROUPS_AT_ONCE = 32
"""Looked at before other requests may have their turn."""


def handle(context: BrokerContext, request: Request, message: ListGroupsRequest) -> Steps[ListGroupsResponse]:
    states = {state.lower() for state in message.states_filter}
    types = {kind.lower() for kind in message.types_filter}
    access = Access.of(context, request)
    sees_all = access.may_cluster(AclOperation.DESCRIBE, asked_for=False)
    response = ListGroupsResponse()
    for number, group_id in enumerate(context.groups.group_ids()):
        if number % _GROUPS_AT_ONCE == _GROUPS_AT_ONCE - 1:
            yield
        if not coordinates(context, group_id):
            continue
        if not (sees_all or access.may(AclOperation.DESCRIBE, ResourceType.GROUP, group_id, asked_for=False)):
            continue
        group = context.groups.group(group_id)
        if (not states or group.state.value.lower() in states) and (not types or _TYPE in types):
            response.groups.append(ListedGroup(group.group_id, group.protocol_type, group.state.value, _TYPE))
    return response
