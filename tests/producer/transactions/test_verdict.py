from __future__ import annotations

import pytest

from aioproducer.errors import KafkaError, NetworkException, error_for
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.transactions.consequences import PARTS
from aioproducer.producer.transactions.state import TRANSITIONS
from aioproducer.producer.transactions.state import TransactionState as S
from aioproducer.producer.transactions.verdict import Verdict, verdict
from aioproducer.protocol.api_key import ApiKey

ASKED_IN = {
    ApiKey.INIT_PRODUCER_ID: {S.INITIALIZING, S.COMMITTING, S.ABORTING},
    ApiKey.END_TXN: {S.COMMITTING, S.ABORTING},
    **{api: {S.IN_TRANSACTION, S.COMMITTING, S.ABORTING, S.ABORTABLE_ERROR} for api in PARTS},
}
"""The states in which a request of each API may be answered."""

LEADS_TO = {
    Verdict.REFUSE: S.UNINITIALIZED,
    Verdict.FAIL_TRANSACTION: S.ABORTABLE_ERROR,
    Verdict.FAIL_ABORT: S.FATAL_ERROR,
    Verdict.FAIL_PRODUCER: S.FATAL_ERROR,
}

REFUSED = error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "")
ABORT = error_for(ErrorCode.TRANSACTION_ABORTABLE, "")
FORGOTTEN = error_for(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "")
FENCED = error_for(ErrorCode.PRODUCER_FENCED, "")
LOADING = error_for(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "")


@pytest.mark.parametrize("api", ASKED_IN, ids=lambda api: api.name)
def test_every_verdict_leads_to_a_state_that_the_table_allows(api: ApiKey) -> None:
    errors = [error_for(code, "") for code in ErrorCode if code is not ErrorCode.NONE]
    for state in ASKED_IN[api]:
        for error in [*errors, NetworkException("gone"), KafkaError("a bug")]:
            what = verdict(api, error, state)
            assert what not in LEADS_TO or LEADS_TO[what] in TRANSITIONS[state], (error, state)


@pytest.mark.parametrize(
    ("api", "error", "state", "expected"),
    [
        (ApiKey.INIT_PRODUCER_ID, REFUSED, S.INITIALIZING, Verdict.REFUSE),
        (ApiKey.INIT_PRODUCER_ID, FORGOTTEN, S.INITIALIZING, Verdict.FAIL_PRODUCER),
        (ApiKey.TXN_OFFSET_COMMIT, ABORT, S.IN_TRANSACTION, Verdict.FAIL_TRANSACTION),
        (ApiKey.END_TXN, ABORT, S.COMMITTING, Verdict.FAIL_TRANSACTION),
        (ApiKey.TXN_OFFSET_COMMIT, ABORT, S.ABORTABLE_ERROR, Verdict.TELL_OF_THE_STATE),
        (ApiKey.TXN_OFFSET_COMMIT, ABORT, S.ABORTING, Verdict.TELL),
        (ApiKey.END_TXN, FORGOTTEN, S.ABORTING, Verdict.TELL),
        (ApiKey.END_TXN, ABORT, S.ABORTING, Verdict.FAIL_ABORT),
        (ApiKey.END_TXN, FENCED, S.COMMITTING, Verdict.FAIL_PRODUCER),
        (ApiKey.TXN_OFFSET_COMMIT, FENCED, S.ABORTABLE_ERROR, Verdict.FAIL_PRODUCER),
    ],
)
def test_a_request_that_cannot_be_retried_gets_its_verdict(
    api: ApiKey, error: KafkaError, state: S, expected: Verdict
) -> None:
    assert verdict(api, error, state) is expected


def test_an_abort_of_a_transaction_that_nobody_may_have_begun_finds_none() -> None:
    none = error_for(ErrorCode.INVALID_TXN_STATE, "")
    assert verdict(ApiKey.END_TXN, none, S.ABORTING, knows=False) is Verdict.TELL
    assert verdict(ApiKey.END_TXN, none, S.ABORTING) is Verdict.FAIL_PRODUCER
    assert verdict(ApiKey.END_TXN, none, S.COMMITTING, knows=False) is Verdict.FAIL_PRODUCER
    assert verdict(ApiKey.END_TXN, FENCED, S.ABORTING, knows=False) is Verdict.FAIL_PRODUCER


def test_a_commit_that_may_be_done_does_not_fail_because_its_producer_id_is_forgotten() -> None:
    assert verdict(ApiKey.END_TXN, FORGOTTEN, S.COMMITTING) is Verdict.FAIL_TRANSACTION
    assert verdict(ApiKey.END_TXN, FORGOTTEN, S.COMMITTING, asked_before=True) is Verdict.FAIL_PRODUCER
    assert verdict(ApiKey.END_TXN, FORGOTTEN, S.ABORTING, asked_before=True) is Verdict.TELL
    assert verdict(ApiKey.END_TXN, ABORT, S.COMMITTING, asked_before=True) is Verdict.FAIL_TRANSACTION


@pytest.mark.parametrize("error", [LOADING, NetworkException("gone")])
def test_a_part_of_a_transaction_is_not_retried_once_the_transaction_is_given_up(error: KafkaError) -> None:
    for api, states in ASKED_IN.items():
        for state in states:
            given_up = api in PARTS and state in (S.ABORTING, S.ABORTABLE_ERROR)
            assert verdict(api, error, state) is (Verdict.TELL_OF_THE_STATE if given_up else Verdict.ASK_AGAIN)
