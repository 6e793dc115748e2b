from __future__ import annotations

import re
from pathlib import Path

import pytest

from aioproducer.errors import KafkaError, NetworkException, ProducerFencedException, TimeoutException, error_for
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.transactions.consequences import FATAL_FOR_BATCHES, Consequence, consequence, named, worst
from aioproducer.protocol.api_key import ApiKey

DOCUMENT = Path(__file__).parents[3] / "docs" / "transactions.md"

APIS = [
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
]

SAME_FOR_ALL = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Consequence.FIND_COORDINATOR,
    ErrorCode.NOT_COORDINATOR: Consequence.FIND_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Consequence.RETRY,
    ErrorCode.CONCURRENT_TRANSACTIONS: Consequence.RETRY,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Consequence.RETRY,
    ErrorCode.REQUEST_TIMED_OUT: Consequence.FIND_COORDINATOR,
    ErrorCode.TRANSACTION_ABORTABLE: Consequence.ABORT,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Consequence.ABORT,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Consequence.ABORT,
    ErrorCode.UNKNOWN_MEMBER_ID: Consequence.ABORT,
    ErrorCode.ILLEGAL_GENERATION: Consequence.ABORT,
    ErrorCode.FENCED_INSTANCE_ID: Consequence.ABORT,
    ErrorCode.OPERATION_NOT_ATTEMPTED: Consequence.ABORT,
    ErrorCode.PRODUCER_FENCED: Consequence.FATAL,
    ErrorCode.INVALID_PRODUCER_EPOCH: Consequence.FATAL,
    ErrorCode.INVALID_TXN_STATE: Consequence.FATAL,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Consequence.FATAL,
    ErrorCode.UNSUPPORTED_VERSION: Consequence.FATAL,
}

OWN = {
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED): Consequence.REFUSED,
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.CLUSTER_AUTHORIZATION_FAILED): Consequence.REFUSED,
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.TRANSACTION_ABORTABLE): Consequence.REFUSED,
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.INVALID_TRANSACTION_TIMEOUT): Consequence.FATAL,
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.UNKNOWN_SERVER_ERROR): Consequence.FATAL,
    (ApiKey.END_TXN, ErrorCode.UNKNOWN_SERVER_ERROR): Consequence.FATAL,
    (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT): Consequence.FATAL,
    (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.UNKNOWN_SERVER_ERROR): Consequence.ABORT,
    (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.INVALID_TOPIC_EXCEPTION): Consequence.ABORT,
}


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
@pytest.mark.parametrize("code", SAME_FOR_ALL, ids=lambda code: code.name)
def test_most_errors_mean_the_same_from_any_broker(api: ApiKey, code: ErrorCode) -> None:
    assert consequence(api, error_for(code, "")) is OWN.get((api, code), SAME_FOR_ALL[code])


@pytest.mark.parametrize(("api", "code"), OWN, ids=lambda one: one.name)
def test_some_errors_mean_something_else_to_one_api(api: ApiKey, code: ErrorCode) -> None:
    assert consequence(api, error_for(code, "")) is OWN[api, code]


def test_of_many_partitions_the_worst_counts() -> None:
    def of(*codes: ErrorCode) -> ErrorCode:
        return worst(ApiKey.ADD_PARTITIONS_TO_TXN, codes)

    skipped = ErrorCode.OPERATION_NOT_ATTEMPTED
    assert of() is of(ErrorCode.NONE) is ErrorCode.NONE
    assert of(skipped, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert of(skipped, skipped) is skipped
    assert of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED) is (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )
    assert of(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.PRODUCER_FENCED, skipped) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_forgotten_producer_id_can_be_got_over_before_the_transaction_ends(api: ApiKey) -> None:
    expected = Consequence.FATAL if api is ApiKey.INIT_PRODUCER_ID else Consequence.ABORT
    assert consequence(api, error_for(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "")) is expected


@pytest.mark.parametrize("error", [NetworkException("gone"), TimeoutException("late")])
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_an_unanswered_request_is_retried_after_finding_the_coordinator(api: ApiKey, error: KafkaError) -> None:
    assert consequence(api, error) is Consequence.FIND_COORDINATOR


def test_fencing_has_one_name_for_users() -> None:
    told = named(error_for(ErrorCode.INVALID_PRODUCER_EPOCH, "old"))
    assert isinstance(told, ProducerFencedException)
    assert told.__cause__ is not None
    other = error_for(ErrorCode.INVALID_TXN_STATE, "")
    assert named(other) is other


WORDS = {
    "again": Consequence.RETRY,
    "find": Consequence.FIND_COORDINATOR,
    "refused": Consequence.REFUSED,
    "abort": Consequence.ABORT,
    "fatal": Consequence.FATAL,
}
ROWS = re.findall(r"^\| ([A-Z_]+) \| (.*) \|$", DOCUMENT.read_text(), re.MULTILINE)


@pytest.mark.parametrize(("code", "told"), ROWS, ids=[code for code, _ in ROWS])
def test_the_table_in_the_documentation_is_true(code: str, told: str) -> None:
    error = error_for(ErrorCode[code], "")
    assert [WORDS[word] for word in told.split(" | ")] == [consequence(api, error) for api in APIS]


def test_every_error_that_has_a_rule_is_documented() -> None:
    documented = {ErrorCode[code] for code, _ in ROWS}
    assert documented >= set(SAME_FOR_ALL) | FATAL_FOR_BATCHES
    assert len(documented) == len(ROWS)
