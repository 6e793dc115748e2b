"""FindCoordinator: the node that coordinates a group or a transactional id, as the request's listener advertises it.

Versions 0 to 6.

Simplification: keys are spread over the nodes themselves, not over the partitions of an internal topic.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 6)

_KEYS_VERSION = 4
"""The first version whose requests have several keys. A repeated key is answered once; Kafka answers it twice."""

_GROUP, _TRANSACTION = 0, 1
_RESOURCES = {_GROUP: ResourceType.GROUP, _TRANSACTION: ResourceType.TRANSACTIONAL_ID}


_KEYS_AT_ONCE = 32


def handle(context: BrokerContext, request: Request, message: FindCoordinatorRequest) -> Steps[FindCoordinatorResponse]:
    access, listener = Access.of(context, request), request.connection.listener
    if request.header.api_version >= _KEYS_VERSION:
        response = FindCoordinatorResponse()
        for number, key in enumerate(dict.fromkeys(message.coordinator_keys), start=1):
            response.coordinators.append(_find(context, access, key, message.key_type, listener))
            if number % _KEYS_AT_ONCE == 0:
                yield
        return response
    only = _find(context, access, message.key, message.key_type, listener)
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _find(context: BrokerContext, access: Access, key: str, key_type: int, listener: str) -> Coordinator:
    if key_type not in _RESOURCES:
        return Coordinator(key, -1, "", -1, ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {key_type}")
    try:
        access.check(AclOperation.DESCRIBE, _RESOURCES[key_type], key)
    except ApiException as error:
        return Coordinator(key, -1, "", -1, error.code, str(error))
    node_id = context.state.nodes.coordinator(key)
    if node_id is None:
        return Coordinator(key, -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE, "no node is alive")
    node = context.state.nodes.find(node_id, listener)
    if node is None:
        reason = f"node {node_id} does not advertise the listener {listener}"
        return Coordinator(key, -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE, reason)
    return Coordinator(key, node.id, node.host, node.port, ErrorCode.NONE, None)
