"""ListConfigResources: the names of what has configs (KIP-1142). Versions 0 and 1; 0 is for subscriptions alone."""

from __future__ import annotations

from collections.abc import Iterable

from aioproducer.acls import AclOperation
from aioproducer.broker.configs.config_resource_type import ConfigResourceType
from aioproducer.broker.configs.resource_configs import Owner
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 1)

_ORDER = (
    ConfigResourceType.GROUP,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.BROKER,
    ConfigResourceType.TOPIC,
)
_AT_ONCE = 1000


def handle(
    context: BrokerContext, request: Request, message: ListConfigResourcesRequest
) -> Steps[ListConfigResourcesResponse]:
    if not Access.of(context, request).may_cluster(AclOperation.DESCRIBE_CONFIGS):
        return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    known = {ConfigResourceType.CLIENT_METRICS} if request.header.api_version == 0 else set(_ORDER)
    wanted = set(message.resource_types) or known
    if wanted - known:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    response = ListConfigResourcesResponse()
    for kind in _ORDER:
        if kind not in wanted:
            continue
        for number, name in enumerate(_names(context, request, kind), start=1):
            response.config_resources.append(ConfigResource(name, kind))
            if number % _AT_ONCE == 0:
                yield
    return response


def _names(context: BrokerContext, request: Request, kind: ConfigResourceType) -> Iterable[str]:
    if kind is ConfigResourceType.TOPIC:
        return tuple(context.state.topics)
    if kind.owner is not None:
        return context.state.resource_configs.names(Owner(kind))
    return [str(node.id) for node in context.state.nodes.alive(request.connection.listener)]
