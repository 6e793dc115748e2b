"""The two phases of exactly-once under every crash, in a simulation of tasks, drivers and coordinators."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.spark.simulations.simulated_query import SimulatedQuery

NUMBERS = st.integers(0, 11)

FAULTS: dict[str, Callable[[SimulatedQuery, int], None]] = {
    "copy": lambda query, number: query.copy(number),
    "stage": lambda query, number: query.begin_the_stage_anew(),
    "lose an attempt": lambda query, number: query.lose_an_attempt(number),
    "kill the driver": lambda query, number: query.kill_the_driver(),
    "lose the driver": lambda query, number: query.lose_the_driver(),
    "skip the epoch": lambda query, number: query.skip_the_epoch(),
    "fail the commit": lambda query, number: query.fail_the_commit(),
    "fail the job": lambda query, number: query.fail_the_job(),
    "a lost driver aborts": lambda query, number: query.abort_by_a_lost_driver(),
    "finish by hand": lambda query, number: query.finish_by_hand(),
    "delete the topic": lambda query, number: query.delete_the_topic(),
    "time out": lambda query, number: query.time_out(number),
}


FAULT = st.tuples(st.integers(0, 120), st.sampled_from(sorted(FAULTS)), NUMBERS)
OF_A_COMMIT = st.tuples(st.integers(0, 40), st.sampled_from(sorted(FAULTS)), NUMBERS)


@given(
    second=st.booleans(),
    faults=st.lists(FAULT, max_size=4),
    of_a_commit=st.lists(OF_A_COMMIT, max_size=3),
    order=st.lists(NUMBERS, min_size=1, max_size=40),
    partitions=st.integers(1, 3),
)
@example(False, [], [(0, "delete the topic", 0), (9, "skip the epoch", 0)], [1], 1)
@settings(max_examples=300, deadline=None)
def test_faults_at_any_turn(
    second: bool,
    faults: list[tuple[int, str, int]],
    of_a_commit: list[tuple[int, str, int]],
    order: list[int],
    partitions: int,
) -> None:
    """Of the whole, or of the first commit, which is short."""
    with closing(SimulatedQuery(second=second)) as query:
        query.start(partitions)
        for turn in range(130):
            ready = [one for one in of_a_commit if one[0] == query.turns_of_the_driver()]
            for one in ready:
                of_a_commit = [other for other in of_a_commit if other is not one]
            for _, fault, number in [*ready, *(one for one in faults if one[0] == turn)]:
                FAULTS[fault](query, number)
                query.check()
            number = order[turn % len(order)]
            query.step(number)
            if number % 3 == 0:
                query.complete(number)
            query.check()
        query.finish(order)


class TwoPhases(RuleBasedStateMachine):
    """Whatever may happen, in any order."""

    @initialize(second=st.booleans(), partitions=st.integers(1, 3))
    def begin(self, second: bool, partitions: int) -> None:
        self.query = SimulatedQuery(second=second)
        self.query.start(partitions)

    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=30))
    def steps(self, numbers: list[int]) -> None:
        for number in numbers:
            self.query.step(number)
            self.query.check()

    @rule(number=NUMBERS)
    def complete(self, number: int) -> None:
        self.query.complete(number)

    @rule(fault=st.sampled_from(sorted(FAULTS)), number=NUMBERS)
    def fault(self, fault: str, number: int) -> None:
        FAULTS[fault](self.query, number)

    @invariant()
    def promised(self) -> None:
        if hasattr(self, "query"):
            self.query.check()

    def teardown(self) -> None:
        if hasattr(self, "query"):
            with closing(self.query):
                self.query.finish([0, 3, 1])


TestTwoPhases: Any = TwoPhases.TestCase
TestTwoPhases.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
