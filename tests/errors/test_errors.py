from __future__ import annotations

import copy
import pickle
import traceback

import pytest

from aioproducer import errors
from aioproducer.errors import (
    ApiException,
    BufferExhaustedException,
    ConfigException,
    DeliveryError,
    InvalidRecordException,
    KafkaError,
    NotLeaderOrFollowerException,
    Outcome,
    ProducerFencedException,
    RetriableException,
    TimeoutException,
    TransactionAbortableException,
    UnknownServerException,
    UnnamedApiException,
    error_class,
    error_for,
    with_advice,
)
from aioproducer.errors.error_code import ErrorCode

CLASSES = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, KafkaError)]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_says_what_it_means_and_can_be_copied_and_pickled(cls: type[KafkaError]) -> None:
    assert cls.__doc__
    error = cls("what was tried")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), error.fresh()):
        assert type(twin).__name__ == cls.__name__
        assert isinstance(twin, cls)
        assert str(twin) == "what was tried"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_flags_agree_with_the_tree(cls: type[KafkaError]) -> None:
    assert cls.retriable == issubclass(cls, RetriableException)
    assert not cls.refresh_metadata or cls.retriable
    assert not (cls.retriable and cls.fatal)


def test_abortable_and_fatal_errors_are_marked() -> None:
    assert [cls for cls in CLASSES if cls.abortable] == [TransactionAbortableException]
    assert [cls for cls in CLASSES if cls.fatal] == [ProducerFencedException]


def test_misuse_can_be_caught_as_python_has_it() -> None:
    assert issubclass(errors.IllegalArgumentException, ValueError)
    assert issubclass(errors.SerializationException, ValueError)
    assert issubclass(errors.IllegalStateException, RuntimeError)


# Codes


def test_an_error_of_a_broker_has_its_class_name_number_and_words() -> None:
    error = error_for(6, "orders-3: no longer the leader")
    assert type(error) is NotLeaderOrFollowerException
    assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert str(error) == "orders-3: no longer the leader (error 6, NOT_LEADER_OR_FOLLOWER)"
    assert str(error_for(7, "")) == "error 7, REQUEST_TIMED_OUT"
    assert type(error_for(7, "")) is TimeoutException  # not one of its descendants


def test_a_code_without_a_class_keeps_its_name() -> None:
    error = error_for(ErrorCode.DUPLICATE_VOTER, "who?")
    assert type(error) is UnnamedApiException
    assert str(error) == "who? (error 126, DUPLICATE_VOTER)"
    assert not error.retriable


def test_an_unknown_code_is_shown_as_it_came() -> None:
    error = error_for(4711, "from the future")
    assert type(error) is UnknownServerException
    assert str(error) == "from the future (error 4711, UNKNOWN_SERVER_ERROR)"


@pytest.mark.parametrize("code", [code for code in ErrorCode if code is not ErrorCode.NONE])
def test_class_and_exception_of_a_code_agree(code: ErrorCode) -> None:
    cls = error_class(code)
    assert type(error_for(code, "x")) is cls
    assert issubclass(cls, ApiException)
    assert cls is UnnamedApiException or cls.code is code


def test_no_two_classes_have_the_same_code() -> None:
    codes = [cls.code for cls in CLASSES if issubclass(cls, ApiException) and "code" in vars(cls)]
    assert len(codes) == len(set(codes))


# The end of a delivery


def test_the_end_of_a_delivery_is_both_the_error_and_a_delivery_error() -> None:
    cause = NotLeaderOrFollowerException("moved")
    error = TimeoutException("too late")
    error.__cause__ = cause
    ended = DeliveryError.of(error, Outcome.NOT_SENT, ("orders", 3))
    assert isinstance(ended, DeliveryError)
    assert isinstance(ended, TimeoutException)
    assert type(ended).__name__ == "TimeoutException"
    assert (str(ended), ended.outcome, ended.topic_partition) == ("too late", Outcome.NOT_SENT, ("orders", 3))
    assert ended.__cause__ is cause
    assert ended.retriable
    assert ended.code is ErrorCode.REQUEST_TIMED_OUT
    assert type(error) is TimeoutException
    assert not isinstance(error, DeliveryError)
    other = DeliveryError.of(BufferExhaustedException("full"), Outcome.NOT_SENT)
    assert isinstance(other, TimeoutException)
    assert type(other) is not type(ended)
    assert type(DeliveryError.of(TimeoutException("again"), Outcome.UNKNOWN)) is type(ended)


@pytest.mark.parametrize(
    "error", [KafkaError("plain"), ConfigException("c", name="linger.ms", value=5), DeliveryError("bare")]
)
def test_any_error_can_end_a_delivery_and_be_pickled(error: KafkaError) -> None:
    ended = DeliveryError.of(error, Outcome.UNKNOWN, ("t", 1))
    for twin in (
        pickle.loads(pickle.dumps(ended)),
        copy.copy(ended),
        ended.fresh(),
        DeliveryError.of(ended, Outcome.UNKNOWN, ("t", 1)),
    ):
        assert type(twin) is type(ended)
        assert isinstance(twin, type(error))
        assert twin.args == error.args
        assert vars(twin) == vars(ended)


def test_the_end_of_a_delivery_may_have_another_outcome() -> None:
    first = DeliveryError.of(TimeoutException("x"), Outcome.NOT_SENT, ("t", 1))
    second = DeliveryError.of(first, Outcome.UNKNOWN, ("t", 2))
    assert (first.outcome, second.outcome) == (Outcome.NOT_SENT, Outcome.UNKNOWN)
    assert type(first) is type(second)


def test_a_fresh_copy_has_the_cause_and_no_traceback() -> None:
    cause = KafkaError("cause")
    with pytest.raises(KafkaError) as raised:
        raise DeliveryError.of(KafkaError("x"), Outcome.UNKNOWN) from cause
    fresh = raised.value.fresh()
    assert fresh.__traceback__ is None
    assert fresh.__cause__ is cause
    assert fresh.__context__ is None
    assert raised.value.__traceback__ is not None
    for _ in range(100):
        with pytest.raises(KafkaError) as again:
            raise fresh.fresh()
        assert len(traceback.extract_tb(again.value.__traceback__)) == 1


def test_a_fresh_copy_hides_nothing_of_what_went_on_when_it_is_raised() -> None:
    error = DeliveryError.of(KafkaError("no cause"), Outcome.UNKNOWN).fresh()
    try:
        raise ValueError("of the user")
    except ValueError:
        with pytest.raises(KafkaError) as raised:
            raise error  # noqa: B904
    assert isinstance(raised.value.__context__, ValueError)
    assert not raised.value.__suppress_context__


def test_a_config_error_knows_its_config() -> None:
    error = ConfigException("no", name="acks", value=2)
    for each in (error, pickle.loads(pickle.dumps(error)), error.fresh()):
        assert (each.name, each.value) == ("acks", 2)


def test_a_batch_has_one_error_and_its_records_may_have_their_own() -> None:
    plain = InvalidRecordException("all of it")
    whole = DeliveryError.of(plain, Outcome.NOT_SENT, ("t", 3))
    assert str(whole.for_record(1)) == "all of it"
    plain.refused_records = {1: "no key"}
    whole = DeliveryError.of(plain, Outcome.NOT_SENT, ("t", 3))
    refused, company = whole.for_record(1), whole.for_record(0)
    assert isinstance(refused, InvalidRecordException)
    assert not isinstance(company, InvalidRecordException)
    assert (str(refused), str(whole)) == ("t-3: no key", "all of it")
    assert company.outcome is refused.outcome is Outcome.NOT_SENT
    assert company.topic_partition == refused.topic_partition == ("t", 3)


def test_a_message_has_advice_where_there_is_any() -> None:
    assert with_advice("", ErrorCode.TOPIC_AUTHORIZATION_FAILED) == (
        "Not authorized for this topic; allow this principal to WRITE to the topic (an ACL)"
    )
    assert with_advice("Too old.", ErrorCode.INVALID_TIMESTAMP).startswith("Too old; see message.timestamp.before")
    assert (
        with_advice("", ErrorCode.NETWORK_EXCEPTION) == "The connection ended before the broker's answer was received"
    )
    assert with_advice("gone", ErrorCode.NETWORK_EXCEPTION) == "gone"
