from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import (
    BufferExhaustedException,
    DeliveryError,
    KafkaError,
    Outcome,
    TimeoutException,
    TransactionAbortedException,
)
from aioproducer.producer.diagnosis.failure_log import MOST_LINES, FailureLog
from aioproducer.timing.log_interval import INTERVAL


def ended(error: KafkaError, outcome: Outcome = Outcome.UNKNOWN) -> DeliveryError:
    return DeliveryError.of(error, outcome, ("t", 0))


LATE = ended(TimeoutException("late"))


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_the_first_failure_is_logged_at_the_next_look(caplog: pytest.LogCaptureFixture) -> None:
    news: list[None] = []
    failures = FailureLog(lambda: news.append(None))
    failures.failed("orders", 3, 17, ended(TimeoutException("not delivered within 5 s"), Outcome.NOT_SENT), 0.0)
    assert news == [None]
    assert not caplog.records
    failures.write(0.0)
    assert caplog.records[0].levelno == logging.ERROR
    assert lines(caplog) == ["orders-3: 17 records were not delivered (not_sent): not delivered within 5 s"]
    assert vars(caplog.records[0])["kafka"] == {
        "event": "not_delivered",
        "topic": "orders",
        "partition": 3,
        "partitions": 1,
        "records": 17,
        "error": "TimeoutException",
        "outcome": "not_sent",
    }
    assert failures.next() is None


def test_a_topic_that_a_user_named_is_shown_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog()
    failures.failed("no\nsuch\x1b[2J", 3, 1, LATE, 0.0)
    failures.write(0.0)
    assert lines(caplog) == [r"no\nsuch\x1b[2J-3: 1 record was not delivered (unknown): late"]
    assert vars(caplog.records[0])["kafka"]["topic"] == "no\nsuch\x1b[2J"


def test_records_of_an_aborted_transaction_are_no_failures(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog()
    failures.failed("orders", 3, 17, ended(TransactionAbortedException("aborted"), Outcome.NOT_SENT), 0.0)
    assert failures.next() is None
    failures.close(0.0)
    assert not caplog.records


def test_failures_at_the_same_time_are_one_line_however_many_partitions(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog()
    for partition in range(100_000):
        failures.failed("orders", partition, 2, LATE, 0.0)
    failures.write(0.0)
    assert lines(caplog) == ["orders: 200000 records in 100000 partitions were not delivered (unknown): late"]
    fields = vars(caplog.records[0])["kafka"]
    assert (fields["partition"], fields["partitions"], fields["records"]) == (None, 100_000, 200_000)


def test_records_that_had_no_partition_yet(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog()
    failures.failed("orders", -1, 1, LATE, 0.0)
    failures.write(0.0)
    failures.failed("orders", -1, 1, LATE, 0.0)
    failures.failed("orders", 4, 1, LATE, 0.0)
    failures.write(INTERVAL)
    assert [line.split(":")[0] for line in lines(caplog)] == ["orders", "orders"]


def test_the_same_again_is_added_up(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog()
    for number in range(100):
        failures.failed("orders", 3, 2, LATE, number * 0.1)
        failures.write(number * 0.1)
    assert failures.next() == INTERVAL
    failures.write(INTERVAL)
    assert [line.split()[1] for line in lines(caplog)] == ["2", "198"]
    failures.failed("orders", 3, 5, LATE, INTERVAL + 1)
    failures.write(INTERVAL + 1)
    assert len(caplog.records) == 2
    failures.write(3 * INTERVAL)
    assert lines(caplog)[2].split()[1] == "5"


def test_other_topics_causes_and_outcomes_have_lines_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog()
    failures.failed("orders", 3, 1, LATE, 0.0)
    failures.failed("other", 3, 1, LATE, 0.0)
    failures.failed("orders", 3, 1, ended(BufferExhaustedException("full")), 0.0)
    failures.failed("orders", 3, 1, ended(TimeoutException("late"), Outcome.NOT_SENT), 0.0)
    failures.write(0.0)
    assert len(caplog.records) == 4


def test_at_the_end_all_failures_are_logged_once_and_later_ones_at_once(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog()
    for number in range(5):
        failures.failed("orders", 3, 10, LATE, float(number))
        failures.write(float(number))
    failures.close(5.0)
    failures.close(5.0)
    assert [line.split()[1] for line in lines(caplog)] == ["10", "40"]
    failures.failed("orders", 3, 7, LATE, 5.0)
    assert lines(caplog)[2].split()[1] == "7"


def test_thousands_of_causes_are_logged_in_turns(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog()
    topics = [f"t{number}" for number in range(5 * MOST_LINES)]
    for topic in topics:
        failures.failed(topic, 0, 1, LATE, 7.0)
    for turn in (1, 2):
        failures.write(7.0)
        assert len(caplog.records) == turn * MOST_LINES
        due = failures.next()
        assert due is not None
        assert due <= 7.0
    assert failures.write_rest(7.0)
    assert failures.write_rest(7.0)
    failures.failed("t0", 0, 1, LATE, 7.0)  # is not due again before long
    assert failures.write_rest(7.0)
    assert not failures.write_rest(7.0)
    assert [line.split("-")[0] for line in lines(caplog)] == [*topics, "t0"]
    assert failures.next() is None


@given(st.lists(st.tuples(st.floats(0, 60), st.integers(0, 2), st.integers(1, 9)), max_size=40))
def test_every_failed_record_is_logged_once_in_few_lines(failed: list[tuple[float, int, int]]) -> None:
    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("aioproducer.producer.diagnosis.failure_log")
    logger.addHandler(handler)
    try:
        failures = FailureLog()
        for when, partition, records in sorted(failed):
            failures.failed("t", partition, records, LATE, when)
            failures.write(when)
        failures.close(60.0)
    finally:
        logger.removeHandler(handler)
    assert sum(int(line.split()[1]) for line in told) == sum(records for _, _, records in failed)
    assert len(told) <= 60 / INTERVAL + 2
