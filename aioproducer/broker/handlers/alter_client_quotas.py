"""AlterClientQuotas: versions 0 and 1 (KIP-546, KIP-612). Any node changes them for all, at once.

Stricter than Kafka: an entity that names a type twice is refused, and so is a quota that is not a number. At most
10,000 entities have quotas.
"""

from __future__ import annotations

from collections import Counter

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.quotas.client_quotas import Entity, entity
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException, InvalidRequestException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
    EntryResult,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 1)


_ENTRIES_AT_ONCE = 32


def handle(
    context: BrokerContext, request: Request, message: AlterClientQuotasRequest
) -> Steps[AlterClientQuotasResponse]:
    access, quotas = Access.of(context, request), context.state.client_quotas
    times = Counter(_named(entry) for entry in message.entries)
    results = []
    for entry in {_named(entry): entry for entry in message.entries}.values():
        code, text = ErrorCode.NONE, None
        try:
            access.check_cluster(AclOperation.ALTER_CONFIGS)
            if times[_named(entry)] > 1:
                raise InvalidRequestException("each entity may be there once")
            changes = [(op.key, None if op.remove else op.value) for op in entry.ops]
            of = entity(_named(entry))
            quotas.change(of, changes, validate_only=message.validate_only)
        except ApiException as error:
            code, text = error.code, str(error)
        results.append(EntryResult(code, text, entry.entity))
        if len(results) % _ENTRIES_AT_ONCE == 0:
            yield
    if not message.validate_only:
        quotas.changed()
    return AlterClientQuotasResponse(entries=results)


def _named(entry: EntryData) -> Entity:
    return tuple(sorted(((part.entity_type, part.entity_name) for part in entry.entity), key=str))
