"""The in-flight windows of partitions, whatever becomes of batches and leaders, and whatever these announce."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from aioproducer.errors.error_code import ErrorCode
from tests.producer.simulations.rules_simulation import NODES, WINDOWS, Place, RulesSimulation

PLACES = [("t", 0), ("t", 1)]
ENDS = [
    *[ErrorCode.NONE] * 5,
    *[ErrorCode.REQUEST_TIMED_OUT] * 2,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.INVALID_RECORD,
]
A_BATCH = 900
"""Bytes of a record that fills one."""

place = st.sampled_from(PLACES)
node = st.sampled_from(NODES)
seconds = st.sampled_from([0.0, 0.2, 2.0])


class WindowsMachine(RuleBasedStateMachine):
    """More batches than any window lets out, of a producer that its brokers know; ``WindowModel`` watches each."""

    @initialize()
    def begin(self) -> None:
        self.here = RulesSimulation(linger=0.0, max_in_flight=30, idempotent=True, memory=10**6)
        for place in PLACES:
            self.here.send(place, A_BATCH)
        self.turn(0.0)
        for node in NODES:
            self.here.answer(node, [])

    @rule(place=place, batches=st.sampled_from([1, 3, 6, 25]))
    def send(self, place: Place, batches: int) -> None:
        for _ in range(batches):
            self.here.send(place, A_BATCH)
        self.turn(0.0)

    @rule(seconds=seconds)
    def turn(self, seconds: float) -> None:
        self.here.loop.now += seconds
        self.here.turn()
        self.here.check_nothing_forgotten()

    @precondition(lambda self: any(self.here.wire.values()))
    @rule(node=node, ends=st.lists(st.sampled_from(ENDS), min_size=1, max_size=8), seconds=seconds)
    def answer(self, node: int, ends: list[ErrorCode], seconds: float) -> None:
        for end in ends[: len(self.here.wire[node])]:
            self.here.answer(node, [end])
        self.turn(seconds)

    @precondition(lambda self: any(self.here.wire.values()))
    @rule(node=node, handled=st.integers(0, 25), late=st.booleans())
    def disconnect(self, node: int, handled: int, late: bool) -> None:
        """Of the requests on the connection some are handled, and perhaps those behind them later."""
        self.here.disconnect(node, handled)
        if not late:
            self.here.late.clear()
        self.turn(0.0)

    @precondition(lambda self: self.here.questions)
    @rule(told=st.booleans())
    def answer_question(self, told: bool) -> None:
        self.here.answer_question(told=told)
        self.turn(0.0)

    @precondition(lambda self: self.here.late)
    @rule()
    def arrive_late(self) -> None:
        self.here.arrive_late()

    @rule(node=node, batches=st.sampled_from(WINDOWS), place=place)
    def announce(self, node: int, batches: int, place: Place) -> None:
        """From the next answer on."""
        self.here.remember(node, batches)
        self.flow(place, 4)

    @rule(place=place, leader=node, told=st.booleans())
    def elect(self, place: Place, leader: int, told: bool) -> None:
        self.here.move(place, leader, told=told)
        self.turn(0.0)

    @rule()
    def metadata(self) -> None:
        self.here.follow()
        self.turn(0.0)

    @rule(place=place, rounds=st.sampled_from([4, 12, 40]))
    def flow(self, place: Place, rounds: int) -> None:
        """For some time all goes well, so that windows are announced and gaps end."""
        self.here.follow()
        self.send(place, 25)
        for _ in range(rounds):
            self.turn(1.0)
            for node in NODES:
                if self.here.wire[node]:
                    self.here.answer(node, [])

    @precondition(lambda self: self.here.completer.incomplete)
    @rule()
    def expire(self) -> None:
        due = self.here.completer.next_expiry()
        assert due is not None
        self.here.loop.now = max(self.here.loop.now, due)
        self.turn(0.0)

    def teardown(self) -> None:
        if hasattr(self, "here"):
            self.here.settle()
            self.here.check_end()


def test_a_window_that_shrinks_under_requests_leaves_a_refusal_without_proof() -> None:
    state = WindowsMachine()
    state.begin()
    state.announce(batches=5, node=1, place=("t", 0))
    state.disconnect(handled=6, late=False, node=1)
    state.flow(place=("t", 0), rounds=4)
    state.answer_question(told=False)
    state.teardown()


WindowsMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=30)
TestWindows = pytest.mark.timeout(300)(WindowsMachine.TestCase)  # a busy machine takes longer
