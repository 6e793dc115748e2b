from __future__ import annotations

import pytest

from aioproducer.error_code import ErrorCode
from aioproducer.errors import KafkaError, NetworkException, ProducerFencedException, TimeoutException, error_for
from aioproducer.producer.transaction_errors import Consequence, consequence, named
from aioproducer.protocol.api_key import ApiKey

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
    ErrorCode.PRODUCER_FENCED: Consequence.FATAL,
    ErrorCode.INVALID_PRODUCER_EPOCH: Consequence.FATAL,
    ErrorCode.INVALID_TXN_STATE: Consequence.FATAL,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Consequence.FATAL,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: Consequence.FATAL,
    ErrorCode.UNSUPPORTED_VERSION: Consequence.FATAL,
    ErrorCode.UNKNOWN_SERVER_ERROR: Consequence.FATAL,
}


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
@pytest.mark.parametrize("code", SAME_FOR_ALL, ids=lambda code: code.name)
def test_most_errors_mean_the_same_whoever_answers(api: ApiKey, code: ErrorCode) -> None:
    assert consequence(api, error_for(code, "")) is SAME_FOR_ALL[code]


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_forgotten_producer_id_can_be_got_over_before_the_transaction_ends(api: ApiKey) -> None:
    expected = Consequence.FATAL if api in (ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN) else Consequence.ABORT
    assert consequence(api, error_for(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "")) is expected


@pytest.mark.parametrize("error", [NetworkException("gone"), TimeoutException("late")])
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_what_was_not_answered_is_asked_again_wherever_the_coordinator_is(api: ApiKey, error: KafkaError) -> None:
    assert consequence(api, error) is Consequence.FIND_COORDINATOR


def test_fencing_has_one_name_for_users() -> None:
    told = named(error_for(ErrorCode.INVALID_PRODUCER_EPOCH, "old"))
    assert isinstance(told, ProducerFencedException)
    assert told.__cause__ is not None
    other = error_for(ErrorCode.INVALID_TXN_STATE, "")
    assert named(other) is other
