"""IncrementalAlterConfigs: change configs of topics and brokers while they run (KIP-339).

Versions 0 and 1. Each resource is changed as a whole or not at all. A topic's configs, and those of all brokers (an
empty name), are changed by any node; those of a single node only by that node.

Simplifications: done at once, known to all nodes; no policies. Kafka keeps a broker config of any name, in case some
plugin wants it; here one that the broker does not have is refused. Topic configs without effect are kept, and the log
says so.
"""

from __future__ import annotations

from aioproducer.broker.configs.config_changes import ConfigChange
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.config_resource import Alteration
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 1)


def handle(
    context: BrokerContext, request: Request, message: IncrementalAlterConfigsRequest
) -> Steps[IncrementalAlterConfigsResponse]:
    access = Access.of(context, request)
    alteration = Alteration(context, access, message.resources, validate_only=message.validate_only)
    response = IncrementalAlterConfigsResponse()
    for resource in message.resources:
        response.responses.append((yield from _alter(alteration, resource)))
        yield
    return response


def _alter(alteration: Alteration, resource: AlterConfigsResource) -> Steps[AlterConfigsResourceResponse]:
    response = AlterConfigsResourceResponse(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        changes = [ConfigChange.of(one.name, one.config_operation, one.value) for one in resource.configs]
        yield from alteration.apply(resource, changes)
    except ApiException as error:
        response.error_code, response.error_message = error.code, str(error)
    return response
