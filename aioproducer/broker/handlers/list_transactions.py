"""ListTransactions: the transactional ids that this node coordinates (KIP-664, KIP-994, KIP-1152).

Versions 0 to 2. Simplification: the pattern of transactional ids is a Python regular expression, Kafka's is RE2's.
"""

from __future__ import annotations

import re

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import coordinates
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.transaction_metadata import TransactionMetadata, TransactionState
from aioproducer.error_code import ErrorCode
from aioproducer.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from aioproducer.protocol.messages.list_transactions import TransactionState as ListedTransaction
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 2)

_KAFKAS_STATES = frozenset({"Dead", "PrepareAbort", "PrepareCommit", "PrepareEpochFence"})
"""No error to ask for, and never found here."""


def handle(context: BrokerContext, request: Request, message: ListTransactionsRequest) -> ListTransactionsResponse:
    known = {state.value for state in TransactionState} | _KAFKAS_STATES
    pattern = message.transactional_id_pattern
    try:
        wanted = re.compile(pattern) if pattern else None
    except re.error:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    now_ms = context.clock.time_ms()

    access = Access.of(context, request)

    def is_wanted(one: TransactionMetadata) -> bool:
        return (
            (not message.state_filters or one.state.value in message.state_filters)
            and (not message.producer_id_filters or one.producer_id in message.producer_id_filters)
            and (message.duration_filter < 0 or one.started_ms < now_ms - message.duration_filter)
            and (wanted is None or wanted.fullmatch(one.transactional_id) is not None)
        )

    return ListTransactionsResponse(
        unknown_state_filters=[state for state in message.state_filters if state not in known],
        transaction_states=[
            ListedTransaction(one.transactional_id, one.producer_id, one.state.value)
            for one in context.transactions.transactions()
            if coordinates(context, one.transactional_id)
            and is_wanted(one)
            and access.may(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, one.transactional_id, asked_for=False)
        ],
    )
