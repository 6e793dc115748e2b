from __future__ import annotations

import pytest

from aioproducer.errors import error_class
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.exchange.completion import APPENDED, MAYBE_APPENDED, SEQUENCE_ERRORS, Action, decide
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch
from aioproducer.producer.idempotence.sequences import PartitionSequences
from tests.producer.simulations.standing_loop import Loop, make_batch, make_ids

RETRIED = {
    # What Kafka's brokers answer to a Produce request and another attempt may mend.
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
}

FINAL = {
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.PRODUCER_FENCED,
}


class Case:
    """A batch under way as number ``place`` of those unresolved, and what is decided about it."""

    def __init__(self, *, place: int = 0, idempotent: bool = True, attempts: int = 1, maybe_appended: bool = False):
        ids = make_ids()
        ids.current = ProducerIdAndEpoch(1, 0)
        self.sequences = PartitionSequences(ids) if idempotent else None
        self.batch: ProducerBatch
        for _ in range(place + 1):
            self.batch = make_batch(Loop(), records=1)
            if self.sequences is not None:
                self.sequences.stamp(self.batch, 0.0, 0)
        self.batch.attempts = attempts
        self.batch.maybe_appended = maybe_appended

    def decide(self, code: ErrorCode, *, retries: int = 100, expired: bool = False) -> Action:
        return decide(code, self.batch, self.sequences, 0.0, retries=retries, expired=expired)


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("code", sorted(set(ErrorCode) - SEQUENCE_ERRORS))
def test_every_code_has_its_action(code: ErrorCode, idempotent: bool) -> None:
    action = Case(idempotent=idempotent).decide(code)
    if code in RETRIED:
        assert action is Action.RETRY
    elif code in FINAL:
        assert action is Action.FAIL
    elif code in APPENDED:
        assert action is (Action.SUCCEED if code is ErrorCode.NONE else Action.SUCCEED_DUPLICATE)
    else:  # nothing that answers a Produce request
        assert action is (Action.RETRY if error_class(code).retriable else Action.FAIL)


@pytest.mark.parametrize("code", sorted(APPENDED))
@pytest.mark.parametrize("expired", [False, True])
def test_a_record_in_the_log_is_delivered_however_late(code: ErrorCode, expired: bool) -> None:
    assert Case(attempts=10).decide(code, expired=expired, retries=2).name.startswith("SUCCEED")


@pytest.mark.parametrize("code", sorted(SEQUENCE_ERRORS))
def test_a_sequence_error_caused_by_another_batch_takes_no_retries(code: ErrorCode) -> None:
    assert Case().decide(code, expired=True) is Action.FAIL
    for place in (0, 1):
        assert Case(attempts=4, place=place).decide(code, retries=1) is not Action.FAIL
    case = Case(attempts=4)
    case.batch.excused = 3
    assert case.decide(ErrorCode.NOT_ENOUGH_REPLICAS, retries=1) is Action.RETRY
    assert case.decide(ErrorCode.NOT_ENOUGH_REPLICAS, retries=0) is Action.FAIL


@pytest.mark.parametrize("code", sorted(RETRIED))
def test_a_passing_error_is_retried_while_there_are_retries_and_time(code: ErrorCode) -> None:
    assert Case().decide(code, expired=True) is Action.FAIL
    assert Case(attempts=4).decide(code, retries=3) is Action.FAIL
    assert Case(attempts=3).decide(code, retries=3) is not Action.FAIL
    assert Case(attempts=1).decide(code, retries=0) is Action.FAIL


@pytest.mark.parametrize("code", sorted(SEQUENCE_ERRORS))
def test_out_of_order_behind_an_unresolved_batch_is_no_gap(code: ErrorCode) -> None:
    assert Case(place=1).decide(code) is Action.RETRY
    assert Case(place=4, maybe_appended=True).decide(code) is Action.RETRY
    assert Case(place=0).decide(code) is Action.RESTAMP


@pytest.mark.parametrize("code", sorted(SEQUENCE_ERRORS))
def test_a_batch_refused_for_its_sequence_is_stamped_anew_only_if_it_cannot_be_in_the_log(code: ErrorCode) -> None:
    assert Case().decide(code) is Action.RESTAMP
    assert Case(idempotent=False).decide(code) is Action.FAIL
    # Of earlier epochs a log remembers nothing, and some brokers forget a producer with the last of its records.
    tells = code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert Case(maybe_appended=True).decide(code) is (Action.RESTAMP if tells else Action.FAIL)
    part = Case(maybe_appended=True)
    part.batch.reshaped = True
    assert part.decide(code) is (Action.ASK if tells else Action.FAIL)


@pytest.mark.parametrize("code", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_behind_a_batch_that_was_stamped_anew_it_needs_another_stamp(code: ErrorCode) -> None:
    case = Case(place=1)
    assert case.sequences is not None
    case.batch.in_flight = True
    case.sequences.unstamp(case.sequences.unresolved[0])
    assert case.decide(code) is Action.RESTAMP
    case.batch.maybe_appended = case.sequences.by_name = True
    assert case.decide(ErrorCode.NOT_ENOUGH_REPLICAS) is Action.RETRY  # it may be in a new log: the broker is asked


def test_a_batch_refused_for_its_content_is_never_retried() -> None:
    for code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP):
        assert Case().decide(code) is Action.FAIL


def test_after_which_answers_a_batch_may_be_in_the_log() -> None:
    """Kafka's ``ReplicaManager`` and ``DelayedProduce``: the rest is answered before anything is appended."""
    assert {
        ErrorCode.NONE,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    } == MAYBE_APPENDED | APPENDED


def test_nothing_is_both_in_the_log_and_perhaps_in_it() -> None:
    assert not APPENDED & MAYBE_APPENDED


def test_a_batch_that_is_too_large_is_split_whatever_the_retries() -> None:
    code = ErrorCode.MESSAGE_TOO_LARGE
    case = Case(attempts=1)
    case.batch.count = 2
    assert case.decide(code) is case.decide(code, retries=0) is Action.SPLIT
    assert case.decide(code, expired=True) is Action.FAIL
    case.batch.maybe_appended = True
    assert case.decide(code) is Action.SPLIT
