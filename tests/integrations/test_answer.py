from __future__ import annotations

import logging
from typing import Any

import pytest

from aioproducer import DeliveryError, KafkaError, Outcome, errors
from aioproducer.errors import (
    BufferExhaustedException,
    IllegalArgumentException,
    IllegalStateException,
    InvalidRecordException,
    NotLeaderOrFollowerException,
    PartitionerException,
    ProducerFencedException,
    RecordTooLargeException,
    SerializationException,
    TimeoutException,
    TopicAuthorizationException,
    TransactionAbortableException,
    TransactionAbortedException,
)
from aioproducer.integrations.answer import Answers


def ended(error: KafkaError, outcome: Outcome = Outcome.NOT_SENT) -> DeliveryError:
    return DeliveryError.of(error, outcome, ("orders", 0))


@pytest.mark.parametrize(
    ("error", "status", "headers"),
    [
        (ended(RecordTooLargeException("2 MB")), 413, {}),
        (SerializationException("no"), 422, {}),
        (ended(InvalidRecordException("no key")), 422, {}),
        (ended(BufferExhaustedException("full")), 503, {"Retry-After": "7"}),
        (ended(TimeoutException("b1:9092 is away")), 503, {"Retry-After": "7"}),
        (ended(NotLeaderOrFollowerException("moved")), 503, {"Retry-After": "7"}),
        (ended(TimeoutException("no answer"), Outcome.UNKNOWN), 504, {}),
        (ended(KafkaError("closed"), Outcome.UNKNOWN), 504, {}),
        # Not for what the record is, and not by a broker: it is safe to try again.
        (ended(KafkaError("closed")), 503, {"Retry-After": "7"}),
        (ended(TransactionAbortedException("another record failed")), 503, {"Retry-After": "7"}),
        (TransactionAbortableException("a record failed"), 503, {"Retry-After": "7"}),
        # Of commit_transaction(): the commit goes on.
        (TimeoutException("not within max.block.ms"), 504, {}),
        (BufferExhaustedException("full"), 503, {"Retry-After": "7"}),
    ],
    ids=lambda value: getattr(type(value), "__name__", None),
)
def test_an_answer_has_the_status_and_headers_of_its_error(
    error: KafkaError, status: int, headers: dict[str, str]
) -> None:
    answer = Answers(retry_after=7).to(error)
    assert answer is not None
    assert (answer.status, answer.headers) == (status, headers)
    assert answer.body["error"] == type(error).__name__
    assert answer.body.get("outcome") == (error.outcome.value if isinstance(error, DeliveryError) else None)


@pytest.mark.parametrize(
    "error",
    [
        ended(TopicAuthorizationException("not yours")),
        ended(PartitionerException("7 of 3")),
        ProducerFencedException("another one"),
        IllegalArgumentException("the topic is empty"),
        IllegalStateException("the producer has failed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_services_own_errors_have_no_answer(error: KafkaError) -> None:
    assert Answers().to(error) is None


EVERY_CLASS = [
    one
    for one in vars(errors).values()
    if isinstance(one, type) and issubclass(one, KafkaError) and one is not DeliveryError
]


def test_every_error_of_unknown_outcome_has_an_answer() -> None:
    for one in EVERY_CLASS:
        unknown = Answers().to(ended(one("x"), Outcome.UNKNOWN))
        assert unknown is not None, one
        assert unknown.status in (504, 413, 422), one
        refused = Answers().to(ended(one("x")))
        assert refused is not None or not (one.retriable or one.abortable), one
        assert refused is None or refused.status != 504, one


def test_the_others_of_a_refused_batch_may_be_sent_again() -> None:
    error = InvalidRecordException("refused")
    error.refused_records = {1: "no key"}
    answers = [Answers().to(ended(error).for_record(index)) for index in (0, 1)]
    assert [answer and answer.status for answer in answers] == [503, 422]


def test_errors_of_the_cluster_go_to_the_log_and_not_to_clients(caplog: pytest.LogCaptureFixture) -> None:
    answer = Answers().to(ended(TimeoutException("secret-host:9092 is away")))
    assert answer is not None
    assert "secret-host" not in str(answer)
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.WARNING, "answered 503: secret-host:9092 is away")
    fields: dict[str, Any] = vars(record)["kafka"]
    assert (fields["event"], fields["status"], fields["outcome"]) == ("answered", 503, "not_sent")
    assert fields["detail"] == "secret-host:9092 is away"


def test_clients_get_errors_of_their_record_in_full(caplog: pytest.LogCaptureFixture) -> None:
    answer = Answers().to(ended(RecordTooLargeException("2 MB, more than max.request.size")))
    assert answer is not None
    assert answer.body["detail"] == "2 MB, more than max.request.size"
    assert caplog.records == []


def test_an_outage_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    answers = Answers(clock=lambda: now)
    for _ in range(1000):
        answers.to(ended(TimeoutException("b1 is away")))
        answers.to(ended(TimeoutException("b1 is away"), Outcome.UNKNOWN))
    now += 10
    answers.to(ended(TimeoutException("b1 is still away")))
    assert [(vars(record)["kafka"]["status"], vars(record)["kafka"]["times"]) for record in caplog.records] == [
        (503, 1),
        (504, 1),
        (503, 1000),
    ]
    assert caplog.messages[2] == "answered 503: b1 is still away (1000 times since the last such line)"
