"""DescribeClientQuotas: versions 0 and 1 (KIP-546). Any node answers."""

from __future__ import annotations

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.quotas.client_quotas import Component
from aioproducer.broker.requests.long_work import Steps
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

_ENTRIES_AT_ONCE = 100


def handle(
    context: BrokerContext, request: Request, message: DescribeClientQuotasRequest
) -> Steps[DescribeClientQuotasResponse]:
    components = [Component(part.entity_type, part.match_type, part.match) for part in message.components]
    try:
        Access.of(context, request).check_cluster(AclOperation.DESCRIBE_CONFIGS)
        found = context.state.client_quotas.describe(components, strict=message.strict)
    except ApiException as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=str(error), entries=None)
    yield
    entries: list[EntryData] = []
    for entity, quotas in found.items():
        named = [EntityData(kind, name) for kind, name in entity]
        entries.append(EntryData(named, [ValueData(key, value) for key, value in quotas.items()]))
        if len(entries) % _ENTRIES_AT_ONCE == 0:
            yield
    return DescribeClientQuotasResponse(error_message=None, entries=entries)
