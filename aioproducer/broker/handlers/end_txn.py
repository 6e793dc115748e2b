"""EndTxn: commits or aborts a transaction.

Versions 0 to 5. Version 5 is of the second protocol (KIP-890): it bumps the epoch, and answers with the new
producer id and epoch.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator, fencing_code
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 5)

_PRODUCER_FENCED_VERSION = 2
_BUMP_VERSION = 5


def handle(context: BrokerContext, request: Request, message: EndTxnRequest) -> EndTxnResponse:
    bump = request.header.api_version >= _BUMP_VERSION
    identity = message.producer_id, message.producer_epoch
    try:
        Access.of(context, request).check(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)
        check_coordinator(context, message.transactional_id)
        goes_on_with = context.transactions.end(
            message.transactional_id, identity, committed=message.committed, bump=bump
        )
    except ApiException as error:
        code = fencing_code(error, request.header.api_version, _PRODUCER_FENCED_VERSION)
        return EndTxnResponse(error_code=code)
    if not bump:
        return EndTxnResponse(error_code=ErrorCode.NONE)
    producer_id, producer_epoch = goes_on_with
    return EndTxnResponse(error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=producer_epoch)
