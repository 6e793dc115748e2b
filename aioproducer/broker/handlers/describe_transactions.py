"""DescribeTransactions: how far transactions have come (KIP-664).

Version 0. Simplification: there is no internal topic, so groups whose offsets a transaction commits are not told.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.error_code import ErrorCode
from aioproducer.errors import ApiException, InvalidRequestException
from aioproducer.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 0)


def handle(
    context: BrokerContext, request: Request, message: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    access = Access.of(context, request)
    return DescribeTransactionsResponse(
        transaction_states=[
            _describe(context, access, transactional_id) for transactional_id in message.transactional_ids
        ]
    )


def _describe(context: BrokerContext, access: Access, transactional_id: str) -> TransactionState:
    told = TransactionState(ErrorCode.NONE, transactional_id)
    try:
        access.check(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        if not transactional_id:
            raise InvalidRequestException("the transactional id is empty")
        check_coordinator(context, transactional_id)
    except ApiException as error:
        told.error_code = error.code
        return told
    metadata = context.transactions.transaction(transactional_id)
    if metadata is None:
        told.error_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return told
    told.transaction_state = metadata.state.value
    told.transaction_timeout_ms = metadata.timeout_ms
    told.transaction_start_time_ms = metadata.started_ms
    told.producer_id, told.producer_epoch = metadata.identity
    topics: dict[str, list[int]] = {}
    for topic, partition in metadata.partitions:
        if access.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic, asked_for=False):
            topics.setdefault(topic, []).append(partition)
    told.topics = [TopicData(topic, partitions) for topic, partitions in topics.items()]
    return told
