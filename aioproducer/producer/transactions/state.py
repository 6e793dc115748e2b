"""The states of a transactional producer and the transitions between them (Kafka's ``TransactionManager.State``).

Rules only: every change that is not in the table is refused. ``PREPARING_TRANSACTION`` is not one of Kafka's, whose
``prepareTransaction`` stays in ``IN_TRANSACTION`` until all records are delivered.
"""

from __future__ import annotations

from enum import Enum

from aioproducer.errors import IllegalStateException


class TransactionState(Enum):
    """Kafka's states and names, and ``PREPARING_TRANSACTION``."""

    UNINITIALIZED = "init_transactions() was not called"
    INITIALIZING = "init_transactions() is under way"
    READY = "no transaction has begun"
    IN_TRANSACTION = "a transaction is open"
    PREPARING_TRANSACTION = "the transaction is being prepared"
    PREPARED_TRANSACTION = "the transaction is prepared: it can only be committed, aborted or completed"
    COMMITTING = "the transaction is being committed"
    ABORTING = "the transaction is being aborted"
    ABORTABLE_ERROR = "the transaction has failed and must be aborted"
    FATAL_ERROR = "the producer is unusable"


_S = TransactionState
TRANSITIONS: dict[TransactionState, frozenset[TransactionState]] = {
    _S.UNINITIALIZED: frozenset({_S.INITIALIZING, _S.FATAL_ERROR}),
    _S.INITIALIZING: frozenset({_S.READY, _S.PREPARED_TRANSACTION, _S.UNINITIALIZED, _S.FATAL_ERROR}),
    _S.READY: frozenset({_S.IN_TRANSACTION, _S.FATAL_ERROR}),
    _S.IN_TRANSACTION: frozenset(
        {_S.PREPARING_TRANSACTION, _S.COMMITTING, _S.ABORTING, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}
    ),
    _S.PREPARING_TRANSACTION: frozenset({_S.PREPARED_TRANSACTION, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.PREPARED_TRANSACTION: frozenset({_S.COMMITTING, _S.ABORTING, _S.FATAL_ERROR}),
    _S.COMMITTING: frozenset({_S.READY, _S.ABORTABLE_ERROR, _S.UNINITIALIZED, _S.FATAL_ERROR}),
    _S.ABORTING: frozenset({_S.READY, _S.UNINITIALIZED, _S.FATAL_ERROR}),
    _S.ABORTABLE_ERROR: frozenset({_S.ABORTING, _S.FATAL_ERROR}),
    _S.FATAL_ERROR: frozenset(),
}
"""Each state and its possible successors. The diagram in docs/transactions.md is drawn from this table."""


def check_transition(now: TransactionState, then: TransactionState) -> None:
    """Raises IllegalStateException unless ``then`` may follow ``now``."""
    if then not in TRANSITIONS[now]:
        raise IllegalStateException(f"a producer cannot go from {now.name} to {then.name}: {now.value}")
