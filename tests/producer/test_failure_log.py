from __future__ import annotations

import logging

import pytest

from aioproducer.errors import BufferExhaustedException, DeliveryError, KafkaError, Outcome, TimeoutException
from aioproducer.producer.failure_log import QUIET, FailureLog


def ended(error: KafkaError, outcome: Outcome = Outcome.UNKNOWN) -> DeliveryError:
    return DeliveryError.of(error, outcome, ("t", 0))


def test_the_first_failure_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    FailureLog().failed("orders", 3, 17, ended(TimeoutException("not delivered within 5 s"), Outcome.NOT_SENT), 0.0)
    (line,) = caplog.records
    assert line.levelno == logging.ERROR
    assert line.getMessage() == "orders-3: 17 records were not delivered (not_sent): not delivered within 5 s"


def test_records_that_had_no_partition_yet(caplog: pytest.LogCaptureFixture) -> None:
    FailureLog().failed("orders", -1, 1, ended(TimeoutException("no metadata")), 0.0)
    FailureLog().failed("orders", 0, 1, ended(TimeoutException("no metadata")), 0.0)
    assert [line.getMessage().split(" ")[0] for line in caplog.records] == ["orders:", "orders-0:"]


def test_the_same_again_is_added_up(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog()
    error = ended(TimeoutException("late"))
    for number in range(100):
        failures.failed("orders", 3, 2, error, number * 0.1)
    assert len(caplog.records) == 1
    failures.failed("orders", 3, 2, error, QUIET)
    assert [line.getMessage().split()[1] for line in caplog.records] == ["2", "200"]
    failures.failed("orders", 3, 5, error, QUIET + 1)
    failures.failed("orders", 3, 5, error, 3 * QUIET)
    assert caplog.records[2].getMessage().split()[1] == "10"


def test_other_partitions_and_causes_have_lines_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog()
    failures.failed("orders", 3, 1, ended(TimeoutException("late")), 0.0)
    failures.failed("orders", 4, 1, ended(TimeoutException("late")), 0.0)
    failures.failed("other", 3, 1, ended(TimeoutException("late")), 0.0)
    failures.failed("orders", 3, 1, ended(BufferExhaustedException("full")), 0.0)
    assert len(caplog.records) == 4


def test_at_the_end_everything_was_told_once(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog()
    for number in range(5):
        failures.failed("orders", 3, 10, ended(TimeoutException("late")), float(number))
    failures.close()
    failures.close()
    assert [line.getMessage() for line in caplog.records[1:]] == [
        "orders-3: 40 more records were not delivered: TimeoutException"
    ]
