"""DescribeTransactions: how far transactions have come (KIP-664).

Version 0. A transactional id that is named twice is described once; Kafka describes it twice. Simplification: there is
no internal topic, so groups whose offsets a transaction commits are not listed.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException, InvalidRequestException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 0)

_PARTITIONS_AT_ONCE = 100


def handle(
    context: BrokerContext, request: Request, message: DescribeTransactionsRequest
) -> Steps[DescribeTransactionsResponse]:
    access = Access.of(context, request)
    response = DescribeTransactionsResponse()
    for transactional_id in dict.fromkeys(message.transactional_ids):
        response.transaction_states.append((yield from _describe(context, access, transactional_id)))
        yield
    return response


def _describe(context: BrokerContext, access: Access, transactional_id: str) -> Steps[TransactionState]:
    described = TransactionState(ErrorCode.NONE, transactional_id)
    try:
        access.check(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        if not transactional_id:
            raise InvalidRequestException("the transactional id is empty")
        check_coordinator(context, transactional_id)
    except ApiException as error:
        described.error_code = error.code
        return described
    metadata = context.transactions.transaction(transactional_id)
    if metadata is None:
        described.error_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return described
    described.transaction_state = metadata.state.value
    described.transaction_timeout_ms = metadata.timeout_ms
    described.transaction_start_time_ms = metadata.started_ms
    described.producer_id, described.producer_epoch = metadata.described_as
    topics: dict[str, list[int]] = {}
    for count, (topic, partition) in enumerate(tuple(metadata.partitions), start=1):
        if access.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic, asked_for=False):
            topics.setdefault(topic, []).append(partition)
        if count % _PARTITIONS_AT_ONCE == 0:
            yield
    described.topics = [TopicData(topic, partitions) for topic, partitions in topics.items()]
    return described
