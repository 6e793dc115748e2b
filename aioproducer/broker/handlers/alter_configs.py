"""AlterConfigs: replace all configs of topics and brokers. Older clients have nothing else.

Versions 0 to 2. What is not given goes back to its default; otherwise as ``incremental_alter_configs.py``.
"""

from __future__ import annotations

from aioproducer.broker.configs.config_changes import ConfigChange, OpType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.config_resource import Alteration
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 2)


def handle(context: BrokerContext, request: Request, message: AlterConfigsRequest) -> Steps[AlterConfigsResponse]:
    access = Access.of(context, request)
    alteration = Alteration(context, access, message.resources, validate_only=message.validate_only)
    response = AlterConfigsResponse()
    for resource in message.resources:
        response.responses.append((yield from _alter(alteration, resource)))
        yield
    return response


def _alter(alteration: Alteration, resource: AlterConfigsResource) -> Steps[AlterConfigsResourceResponse]:
    response = AlterConfigsResourceResponse(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        changes = [ConfigChange.of(one.name, OpType.SET, one.value) for one in resource.configs]
        yield from alteration.replace(resource, changes)
    except ApiException as error:
        response.error_code, response.error_message = error.code, str(error)
    return response
