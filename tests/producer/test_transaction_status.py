from __future__ import annotations

import pytest

from aioproducer.error_code import ErrorCode
from aioproducer.errors import (
    IllegalStateException,
    KafkaError,
    TopicAuthorizationException,
    TransactionAbortableException,
    TransactionAbortedException,
    error_for,
)
from aioproducer.producer.transaction_state import TransactionState as S
from aioproducer.producer.transaction_status import TransactionStatus


def status(state: S, error: KafkaError | None = None) -> TransactionStatus:
    made = TransactionStatus("id")
    made.state, made.error = state, error
    return made


def test_what_each_state_allows() -> None:
    assert [state for state in S if status(state).is_open()] == [S.IN_TRANSACTION, S.ABORTABLE_ERROR]
    assert [state for state in S if status(state).goes_on()] == [S.IN_TRANSACTION, S.COMMITTING]
    assert [state for state in S if not status(state).why_no_records()] == [S.IN_TRANSACTION]


def test_a_call_in_another_state_is_misuse_and_says_which() -> None:
    status(S.READY).require("begin_transaction", S.READY)
    with pytest.raises(IllegalStateException, match="begin_transaction was called, but a transaction is open"):
        status(S.IN_TRANSACTION).require("begin_transaction", S.READY)
    closed = status(S.READY)
    closed.closed = True
    with pytest.raises(IllegalStateException, match="the producer is closed"):
        closed.require("begin_transaction", S.READY)


def test_after_a_failure_only_what_gets_over_it_is_allowed() -> None:
    failed = status(S.ABORTABLE_ERROR, TopicAuthorizationException("no"))
    failed.require("abort_transaction", S.IN_TRANSACTION, S.ABORTABLE_ERROR)
    with pytest.raises(TransactionAbortableException, match="must be aborted: no") as told:
        failed.require("commit_transaction", S.IN_TRANSACTION)
    assert told.value.__cause__ is failed.error
    fatal = status(S.FATAL_ERROR, TopicAuthorizationException("no"))
    with pytest.raises(TopicAuthorizationException):
        fatal.require("abort_transaction", S.IN_TRANSACTION, S.ABORTABLE_ERROR)


def test_a_transaction_that_was_open_for_too_long_says_so() -> None:
    fenced = status(S.ABORTABLE_ERROR, error_for(ErrorCode.INVALID_PRODUCER_EPOCH, ""))
    assert "transaction.timeout.ms" in str(fenced.failure())


def test_an_abort_that_nothing_has_failed_before_is_told_as_that() -> None:
    assert isinstance(status(S.ABORTING).failure(), TransactionAbortedException)


def test_an_error_stays_until_it_is_taken_back() -> None:
    one = status(S.IN_TRANSACTION)
    error = TopicAuthorizationException("no")
    one.become(S.ABORTABLE_ERROR, error)
    one.become(S.ABORTING)
    assert one.error is error
    with pytest.raises(IllegalStateException, match="from ABORTING to IN_TRANSACTION"):
        one.become(S.IN_TRANSACTION)
