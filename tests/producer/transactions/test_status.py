from __future__ import annotations

import pytest

from aioproducer.errors import (
    IllegalStateException,
    KafkaError,
    TopicAuthorizationException,
    TransactionAbortableException,
    TransactionAbortedException,
    error_for,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.transactions.state import TransactionState as S
from aioproducer.producer.transactions.status import TransactionStatus


def status(state: S, error: KafkaError | None = None) -> TransactionStatus:
    made = TransactionStatus("id")
    made.state, made.error = state, error
    return made


def test_each_state_allows_its_calls() -> None:
    assert [state for state in S if status(state).is_open()] == [S.IN_TRANSACTION, S.ABORTABLE_ERROR]
    going_on = [state for state in S if status(state).goes_on()]
    assert going_on == [S.IN_TRANSACTION, S.PREPARING_TRANSACTION, S.COMMITTING]
    assert [state for state in S if not status(state).why_no_records()] == [S.IN_TRANSACTION]


def test_nothing_that_fails_when_all_records_are_delivered_fails_the_transaction() -> None:
    committing = status(S.COMMITTING)
    committing.complete = True
    assert not committing.goes_on()


def test_a_transaction_is_committed_when_every_call_has_sent_its_records() -> None:
    here = status(S.READY)
    here.become(S.IN_TRANSACTION)
    first, second = here.bulk_began(), here.bulk_began()
    here.bulk_ended(first)
    with pytest.raises(IllegalStateException, match="commit was called, but send_many or send_table has not sent"):
        here.require_all_sent("commit")
    here.become(S.ABORTABLE_ERROR, KafkaError("failed"))
    here.require_all_sent("commit")  # that it has failed is more important
    here.become(S.ABORTING)
    here.become(S.READY)
    here.become(S.IN_TRANSACTION)
    here.require_all_sent("commit")
    here.bulk_ended(second)  # of the transaction before
    third = here.bulk_began()
    assert third == second + 1
    with pytest.raises(IllegalStateException):
        here.require_all_sent("commit")


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


def test_an_abort_without_an_earlier_failure_is_reported_as_an_abort() -> None:
    assert isinstance(status(S.ABORTING).failure(), TransactionAbortedException)


def test_an_error_stays_until_it_is_taken_back() -> None:
    one = status(S.IN_TRANSACTION)
    error = TopicAuthorizationException("no")
    one.become(S.ABORTABLE_ERROR, error)
    one.become(S.ABORTING)
    assert one.error is error
    with pytest.raises(IllegalStateException, match="from ABORTING to IN_TRANSACTION"):
        one.become(S.IN_TRANSACTION)
