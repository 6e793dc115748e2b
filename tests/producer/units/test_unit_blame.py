from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import (
    IllegalGenerationException,
    InvalidProducerEpochException,
    KafkaError,
    NetworkException,
    RecordTooLargeException,
    TimeoutException,
    TopicAuthorizationException,
    TransactionAbortableException,
    TransactionAbortedException,
)
from aioproducer.producer.units.unit_blame import is_certain, is_of_offsets, is_of_the_transaction, parts


@pytest.mark.parametrize(
    ("error", "of_the_transaction", "certain", "of_offsets"),
    [
        (TransactionAbortedException(""), True, False, False),
        (TransactionAbortableException(""), True, False, False),
        (InvalidProducerEpochException(""), True, False, False),
        (RecordTooLargeException(""), False, False, False),
        (TimeoutException(""), False, False, False),
        (NetworkException(""), False, False, False),
        (TopicAuthorizationException(""), False, True, False),
        (IllegalGenerationException(""), False, True, True),
    ],
)
def test_an_error_is_of_the_unit_the_transaction_or_its_offsets(
    error: KafkaError, of_the_transaction: bool, certain: bool, of_offsets: bool
) -> None:
    assert is_of_the_transaction(error) is of_the_transaction
    assert is_certain(error) is certain
    assert is_of_offsets(error) is of_offsets


def test_suspects_are_alone_and_the_others_together() -> None:
    assert parts([1, 2, 3, 4, 5], {3}, found=False) == [[1, 2], [3], [4, 5]]
    assert parts([1, 2, 3], {1, 2}, found=False) == [[1], [2], [3]]


def test_without_a_suspect_halves_are_tried() -> None:
    assert parts([1, 2, 3, 4, 5], (), found=False) == [[1, 2], [3, 4, 5]]


def test_units_left_after_a_found_fault_stay_together() -> None:
    assert parts([1, 2, 4], (), found=True) == [[1, 2, 4]]
    assert parts([], (), found=True) == []


@given(st.integers(1, 1000), st.data())
def test_one_poisoned_unit_costs_the_logarithm(count: int, data: st.DataObject) -> None:
    poisoned = data.draw(st.integers(0, count - 1))
    waiting, transactions, committed = [list(range(count))], 0, []
    while waiting:
        part = waiting.pop(0)
        transactions += 1
        if poisoned not in part:
            committed += part
        elif len(part) > 1:
            waiting[:0] = parts(part, (), found=False)
    assert committed == [number for number in range(count) if number != poisoned]
    assert transactions <= 2 * count.bit_length() + 1
