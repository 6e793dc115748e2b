"""ListTransactions: the transactional ids that this node coordinates (KIP-664, KIP-994, KIP-1152).

Versions 0 to 2. Simplification: the pattern of transactional ids is a subset of RE2's (``linear_pattern.py``).
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.configs.linear_pattern import LinearPattern
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import coordinates
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.transaction_metadata import TransactionMetadata, TransactionState
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from aioproducer.protocol.messages.list_transactions import TransactionState as ListedTransaction
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 2)

_KAFKAS_STATES = frozenset({"Dead", "PrepareEpochFence"})
"""Valid in a filter, though no transaction here is ever in these states."""

_TRANSACTIONS_AT_ONCE = 32


def handle(
    context: BrokerContext, request: Request, message: ListTransactionsRequest
) -> Steps[ListTransactionsResponse]:
    known = {state.value for state in TransactionState} | _KAFKAS_STATES
    pattern = message.transactional_id_pattern
    try:
        wanted = LinearPattern(pattern) if pattern else None
    except ValueError:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    now_ms = context.clock.time_ms()
    access = Access.of(context, request)
    states, producer_ids = frozenset(message.state_filters), frozenset(message.producer_id_filters)

    def is_wanted(one: TransactionMetadata) -> bool:
        return (
            (not states or one.state.value in states)
            and (not producer_ids or one.described_as[0] in producer_ids)
            and (message.duration_filter < 0 or one.started_ms < now_ms - message.duration_filter)
        )

    response = ListTransactionsResponse(
        unknown_state_filters=[state for state in message.state_filters if state not in known]
    )
    for number, one in enumerate(tuple(context.transactions.transactions()), start=1):
        name = one.transactional_id
        if (
            coordinates(context, name)
            and is_wanted(one)
            and access.may(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name, asked_for=False)
            and (wanted is None or (yield from wanted.fullmatch(name)))
        ):
            response.transaction_states.append(ListedTransaction(name, one.described_as[0], one.state.value))
        if number % _TRANSACTIONS_AT_ONCE == 0:
            yield
    return response
