from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.parking.waiting_line import WaitingLine
from aioproducer.types import ProducerRecord
from tests.producer.simulations.standing_loop import Loop, audience
from tests.support.compiled import COMPILED


def record(number: int) -> ParkedRecord:
    made = ParkedRecord(audience(Loop()), ProducerRecord("t", b"v"), 1, now=0.0, max_block=1.0)
    made.number = number
    return made


def line_of(records: Iterable[ParkedRecord]) -> WaitingLine:
    line = WaitingLine()
    for one in records:
        line.add(one)
    return line


def test_an_empty_line_has_no_first_and_no_last() -> None:
    line = WaitingLine()
    assert len(line) == 0
    assert list(line) == []
    with pytest.raises(IndexError):
        line.first()
    with pytest.raises(IndexError):
        line.last()
    with pytest.raises(KeyError):
        line.remove(record(1))


def test_the_last_is_the_one_that_came_to_the_line_last() -> None:
    old, young = record(1), record(2)
    line = line_of([young, old])
    assert (line.first(), line.last()) == (old, old)
    line.remove(old)
    assert (line.first(), line.last()) == (young, young)


def test_a_record_of_another_line_with_the_same_number_is_not_here() -> None:
    line = line_of([record(1)])
    assert record(1) not in line


def test_a_line_may_change_while_it_is_gone_through() -> None:
    line = line_of([record(1), record(2)])
    for one in line:
        line.remove(one)
        line.add(record(one.number + 2))
    assert [one.number for one in line] == [3, 4]


def test_records_that_have_left_take_no_memory() -> None:
    stuck, line = record(0), WaitingLine()
    line.add(stuck)
    for number in range(1, 10_000):
        gone = record(number)
        line.add(gone)
        line.remove(gone)
        assert len(line._numbers) < 100
    assert line.first() is stuck


class Counted(int):
    """A number that counts how often any was compared."""

    compared = 0

    def __lt__(self, other: Any) -> bool:
        Counted.compared += 1
        return int(self) < int(other)


@pytest.mark.skipif(COMPILED, reason="compiled code compares what the numbers are, not what counts")
def test_leaving_from_anywhere_costs_the_logarithm_of_the_length() -> None:
    def comparisons(length: int) -> float:
        records = [record(Counted(number)) for number in range(length)]
        line = line_of(records)
        random.Random(1).shuffle(records)
        Counted.compared = 0
        for one in records:
            line.remove(one)
            if len(line) > 0:
                line.first()
        return Counted.compared / length

    assert comparisons(4000) < 1.5 * comparisons(500) + 10
    assert comparisons(4000) < 40


class Machine(RuleBasedStateMachine):
    """Against a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.line = WaitingLine()
        self.there: list[ParkedRecord] = []
        self.gone: list[ParkedRecord] = []
        self.count = 0

    @rule(many=st.sampled_from([1, 3, 100]))
    def come(self, many: int) -> None:
        for _ in range(many):
            self.count += 1
            new = record(self.count)
            self.line.add(new)
            self.there.append(new)

    @precondition(lambda self: self.there)
    @rule(data=st.data(), many=st.sampled_from([1, 3, 90]))
    def leave(self, data: st.DataObject, many: int) -> None:
        start = data.draw(st.integers(0, len(self.there) - 1))
        for one in self.there[start : start + many]:
            self.line.remove(one)
            self.there.remove(one)
            self.gone.append(one)

    @precondition(lambda self: self.gone)
    @rule(data=st.data())
    def come_back(self, data: st.DataObject) -> None:
        one = self.gone.pop(data.draw(st.integers(0, len(self.gone) - 1)))
        self.line.add(one)
        self.there.append(one)
        self.there.sort(key=lambda one: one.number)

    @precondition(lambda self: self.gone)
    @rule()
    def all_come_back(self) -> None:
        self.gone.sort(key=lambda one: one.number)
        for one in self.gone:
            self.line.add(one)
        self.there += self.gone
        self.there.sort(key=lambda one: one.number)
        self.gone.clear()

    @invariant()
    def it_is_as_the_list_says(self) -> None:
        assert list(self.line) == self.there
        assert len(self.line) == len(self.there)
        assert all(one in self.line for one in self.there)
        assert not any(one in self.line for one in self.gone)
        if self.there:
            assert self.line.first() is self.there[0]


Machine.TestCase.settings = settings(max_examples=30, stateful_step_count=30)
TestWaitingLine = Machine.TestCase
