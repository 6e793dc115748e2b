from __future__ import annotations

import logging
from typing import Any

import pytest

from aioproducer import DeliveryError, KafkaError, Outcome
from aioproducer.errors import (
    BufferExhaustedException,
    IllegalArgumentException,
    IllegalStateException,
    InvalidRecordException,
    NotLeaderOrFollowerException,
    ProducerFencedException,
    RecordTooLargeException,
    SerializationException,
    TimeoutException,
    TopicAuthorizationException,
)
from aioproducer.integrations.answer import answer_to


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
        (TimeoutException("no metadata"), 503, {"Retry-After": "7"}),
        (ended(NotLeaderOrFollowerException("moved")), 503, {"Retry-After": "7"}),
        (ended(TimeoutException("no answer"), Outcome.UNKNOWN), 504, {}),
        (ended(KafkaError("closed"), Outcome.UNKNOWN), 504, {}),
    ],
    ids=lambda value: getattr(type(value), "__name__", None),
)
def test_whose_fault_it_is_and_what_to_do(error: KafkaError, status: int, headers: dict[str, str]) -> None:
    answer = answer_to(error, retry_after=7)
    assert answer is not None
    assert (answer.status, answer.headers) == (status, headers)
    assert answer.body["error"] == type(error).__name__
    assert answer.body.get("outcome") == (error.outcome.value if isinstance(error, DeliveryError) else None)


@pytest.mark.parametrize(
    "error",
    [
        ended(TopicAuthorizationException("not yours")),
        ProducerFencedException("another one"),
        IllegalArgumentException("the topic is empty"),
        IllegalStateException("the producer has failed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_services_own_errors_have_no_answer(error: KafkaError) -> None:
    assert answer_to(error) is None


def test_what_concerns_the_cluster_is_told_to_the_log_and_not_to_clients(caplog: pytest.LogCaptureFixture) -> None:
    answer = answer_to(ended(TimeoutException("secret-host:9092 is away")))
    assert answer is not None
    assert "secret-host" not in str(answer)
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.WARNING, "answered 503: secret-host:9092 is away")
    fields: dict[str, Any] = vars(record)["kafka"]
    assert (fields["event"], fields["status"], fields["outcome"]) == ("answered", 503, "not_sent")
    assert fields["detail"] == "secret-host:9092 is away"


def test_what_concerns_the_record_is_told_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    answer = answer_to(ended(RecordTooLargeException("2 MB, more than max.request.size")))
    assert answer is not None
    assert answer.body["detail"] == "2 MB, more than max.request.size"
    assert caplog.records == []
