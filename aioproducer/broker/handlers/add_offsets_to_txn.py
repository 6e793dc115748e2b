"""AddOffsetsToTxn: a group whose offsets a transaction is going to commit (the first protocol of transactions).

Versions 0 to 4.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator, fencing_code
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 4)

_PRODUCER_FENCED_VERSION = 2


def handle(context: BrokerContext, request: Request, message: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    identity = message.producer_id, message.producer_epoch
    access = Access.of(context, request)
    try:
        access.check(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)
        access.check(AclOperation.READ, ResourceType.GROUP, message.group_id)
        check_coordinator(context, message.transactional_id)
        context.transactions.add_group(message.transactional_id, identity, message.group_id)
    except ApiException as error:
        code = fencing_code(error, request.header.api_version, _PRODUCER_FENCED_VERSION)
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse(error_code=ErrorCode.NONE)
