"""DescribeClientQuotas: versions 0 and 1 (KIP-546). Any node answers."""

from __future__ import annotations

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.quotas.client_quotas import Component
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 1)


def handle(
    context: BrokerContext, request: Request, message: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    components = [Component(part.entity_type, part.match_type, part.match) for part in message.components]
    try:
        Access.of(context, request).check_cluster(AclOperation.DESCRIBE_CONFIGS)
        found = context.state.client_quotas.describe(components, strict=message.strict)
    except ApiException as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=str(error), entries=None)
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                [EntityData(kind, name) for kind, name in entity],
                [ValueData(key, value) for key, value in quotas.items()],
            )
            for entity, quotas in found.items()
        ],
    )
