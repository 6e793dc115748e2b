from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from aioproducer import BulkResult, OffsetRange, TopicPartition
from aioproducer.producer.diagnosis.failure_log import FailedRun
from tests.producer.simulations.standing_loop import failure


def test_a_partition_is_found_by_its_name_and_number() -> None:
    result = BulkResult(2, 2, {TopicPartition("t", 1): OffsetRange(5, 6, 2)}, ())
    assert result.offsets["t", 1].last == 6
    assert (result.failed, result.errors) == (0, [])
    result.raise_if_failed()


def test_errors_are_in_order_of_the_call_and_shared() -> None:
    one, other = failure("one"), failure("other")
    result = BulkResult(10, 5, {}, ((range(4, 7), one), ([0, 9], other)))
    assert result.failed == 5
    assert result.errors == [(0, other), (4, one), (5, one), (6, one), (9, other)]


def test_the_first_failure_is_raised_with_the_number_of_all() -> None:
    result = BulkResult(10, 8, {}, ((range(4, 5), failure("late")), (range(2, 3), failure("early"))))
    with pytest.raises(type(failure()), match="early") as caught:
        result.raise_if_failed()
    assert caught.value.__notes__ == ["record 2, the first of 2 that failed out of 10"]
    assert repr(result) == "<BulkResult count=10 delivered=8 failed=2>"


def raised(result: BulkResult) -> None:
    with pytest.raises(type(failure())):
        result.raise_if_failed()


LOOKS: dict[str, Callable[[BulkResult], object]] = {
    "failed": lambda result: result.failed,
    "errors": lambda result: result.errors,
    "raise_if_failed": raised,
}


@pytest.mark.parametrize("look", LOOKS)
def test_failures_that_somebody_looks_at_are_not_unread(look: str) -> None:
    unread: list[Sequence[FailedRun]] = []
    LOOKS[look](BulkResult(3, 2, {}, ((range(1), failure("one")),), unread.append))
    assert unread == []


def test_failures_that_nobody_looks_at_are_unread_when_the_result_has_gone() -> None:
    unread: list[Sequence[FailedRun]] = []
    runs = ((range(1), failure("one")),)
    result = BulkResult(3, 2, {}, runs, unread.append)
    assert (result.count, result.delivered, result.offsets) == (3, 2, {})
    assert "failed=1" in repr(result)
    assert unread == []
    del result
    assert unread == [runs]
    BulkResult(3, 3, {}, (), unread.append)
    assert len(unread) == 1
