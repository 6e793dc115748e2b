"""AddPartitionsToTxn: partitions that a transaction is going to write to (the first protocol of transactions).

Versions 0 to 3; those that brokers use among themselves are not offered.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator, fencing_code
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 3)

_PRODUCER_FENCED_VERSION = 2
_PARTITIONS_AT_ONCE = 100


def handle(
    context: BrokerContext, request: Request, message: AddPartitionsToTxnRequest
) -> Steps[AddPartitionsToTxnResponse]:
    wanted = [(topic.name, index) for topic in message.v3_and_below_topics for index in topic.partitions]
    access = Access.of(context, request)
    may_write = access.may_transactional_id(AclOperation.WRITE, message.v3_and_below_transactional_id)
    refused = {}
    for number, partition in enumerate(wanted if may_write else (), start=1):
        code = _refusal(context, access, partition)
        if code:
            refused[partition] = code
        if number % _PARTITIONS_AT_ONCE == 0:
            yield
    if not may_write:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif refused:  # all or nothing
        code = ErrorCode.OPERATION_NOT_ATTEMPTED
    else:
        code = _add(context, request, message, wanted)
    response = AddPartitionsToTxnResponse()
    for topic in message.v3_and_below_topics:
        yield
        results: list[AddPartitionsToTxnPartitionResult] = []
        for index in topic.partitions:
            results.append(AddPartitionsToTxnPartitionResult(index, refused.get((topic.name, index), code)))
            if len(results) % _PARTITIONS_AT_ONCE == 0:
                yield
        response.results_by_topic_v3_and_below.append(AddPartitionsToTxnTopicResult(topic.name, results))
    return response


def _refusal(context: BrokerContext, access: Access, partition: tuple[str, int]) -> ErrorCode:
    if not access.may_topic(AclOperation.WRITE, partition[0]):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = context.state.find_partition(*partition) is not None
    return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _add(
    context: BrokerContext, request: Request, message: AddPartitionsToTxnRequest, wanted: list[tuple[str, int]]
) -> ErrorCode:
    transactional_id = message.v3_and_below_transactional_id
    identity = message.v3_and_below_producer_id, message.v3_and_below_producer_epoch
    try:
        check_coordinator(context, transactional_id)
        context.transactions.add_partitions(transactional_id, identity, wanted)
    except ApiException as error:
        return fencing_code(error, request.header.api_version, _PRODUCER_FENCED_VERSION)
    return ErrorCode.NONE
