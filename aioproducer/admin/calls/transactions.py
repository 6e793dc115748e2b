"""Requests to the coordinators of transactions, about transactions of other producers (KIP-664)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from aioproducer.errors import KafkaError, error_for, with_advice
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.client import KafkaClient
from aioproducer.net.coordinators import TRANSACTION, Coordinators
from aioproducer.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from aioproducer.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

_NEWEST_END_TXN_OF_THE_FIRST_PROTOCOL = 4
_DESCRIBED_AT_ONCE = 100


@dataclass(frozen=True)
class TransactionDescription:
    """What a coordinator knows of a transactional id."""

    state: str
    """Kafka's name of the state, such as ``Ongoing``."""
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int
    """By the coordinator's clock; -1 if no transaction is open."""


async def listed(client: KafkaClient, node: int, states: Sequence[str]) -> list[str]:
    """The transactional ids in one of these states that a node coordinates. Raises the error that it answers."""
    response = await client.request(
        ListTransactionsRequest(state_filters=list(states)), ListTransactionsResponse, node_id=node
    )
    _check(response.error_code, f"the transactions of node {node}")
    return [one.transactional_id for one in response.transaction_states]


async def described(
    client: KafkaClient, coordinators: Coordinators, transactional_ids: Sequence[str]
) -> dict[str, TransactionDescription | None]:
    """One attempt; None for an id that its coordinator does not know. Raises a coordinator's error."""
    by_node: dict[int, list[str]] = defaultdict(list)
    for name, node in (await coordinators.find_all(TRANSACTION, transactional_ids)).items():
        by_node[node].append(name)
    found: dict[str, TransactionDescription | None] = {}
    for node, names in by_node.items():
        try:
            for begin in range(0, len(names), _DESCRIBED_AT_ONCE):
                request = DescribeTransactionsRequest(names[begin : begin + _DESCRIBED_AT_ONCE])
                response = await client.request(request, DescribeTransactionsResponse, node_id=node)
                found |= {one.transactional_id: _description(one) for one in response.transaction_states}
        except KafkaError:
            for name in names:
                coordinators.forget(TRANSACTION, name)
            raise
    return {name: found[name] for name in transactional_ids}


def _description(one: TransactionState) -> TransactionDescription | None:
    if one.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return None
    _check(one.error_code, f"the transaction of {one.transactional_id!r}")
    return TransactionDescription(
        one.transaction_state,
        one.producer_id,
        one.producer_epoch,
        one.transaction_timeout_ms,
        one.transaction_start_time_ms,
    )


async def ended(
    client: KafkaClient,
    coordinators: Coordinators,
    transactional_id: str,
    identity: tuple[int, int],
    *,
    committed: bool,
    second_protocol: bool,
) -> None:
    """One attempt. Raises the coordinator's error."""
    node = await coordinators.find(TRANSACTION, transactional_id)
    try:
        response = await client.request(
            EndTxnRequest(transactional_id, *identity, committed),
            EndTxnResponse,
            node_id=node,
            at_most=None if second_protocol else _NEWEST_END_TXN_OF_THE_FIRST_PROTOCOL,
        )
        _check(response.error_code, f"the end of the transaction of {transactional_id!r}")
    except KafkaError as error:
        if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
            coordinators.forget(TRANSACTION, transactional_id)
        raise


async def fenced(
    client: KafkaClient, coordinators: Coordinators, transactional_id: str, identity: tuple[int, int], timeout_ms: int
) -> None:
    """One attempt. Raises the coordinator's error."""
    node = await coordinators.find(TRANSACTION, transactional_id)
    try:
        response = await client.request(
            InitProducerIdRequest(transactional_id, timeout_ms, *identity), InitProducerIdResponse, node_id=node
        )
        _check(response.error_code, f"the end of the producer with transactional.id {transactional_id!r}")
    except KafkaError as error:
        if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
            coordinators.forget(TRANSACTION, transactional_id)
        raise


def _check(code: int, what: str) -> None:
    if code != ErrorCode.NONE:
        raise error_for(code, f"{what}: {with_advice('', code)}")
