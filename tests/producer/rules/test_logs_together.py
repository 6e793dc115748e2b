"""Order in one partition whose log is replaced, or forgets the producer, whatever becomes of its batches meanwhile."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from aioproducer.errors.error_code import ErrorCode
from tests.producer.simulations.rules_simulation import RulesSimulation

from .test_windows_together import A_BATCH

PLACE = ("t", 0)
NODE = 1
ENDS = [
    *[ErrorCode.NONE] * 3,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.INVALID_RECORD,
]


ends = st.lists(st.sampled_from(ENDS), min_size=1, max_size=5)


class LogsMachine(RuleBasedStateMachine):
    """One partition, one node; each record is a batch."""

    @initialize()
    def begin(self) -> None:
        self.here = RulesSimulation(linger=0.0, max_in_flight=30, idempotent=True, memory=10**6)
        self.here.move(PLACE, NODE, told=True)
        self.send(1)
        self.answer([ErrorCode.NONE])

    @rule(batches=st.sampled_from([1, 3, 6]))
    def send(self, batches: int) -> None:
        for _ in range(batches):
            self.here.send(PLACE, A_BATCH)
        self.turn(0.0)

    @rule(seconds=st.sampled_from([0.0, 2.0]))
    def turn(self, seconds: float) -> None:
        self.here.loop.now += seconds
        self.here.turn()
        self.here.check_nothing_forgotten()

    @precondition(lambda self: any(self.here.wire.values()))
    @rule(ends=ends)
    def answer(self, ends: list[ErrorCode]) -> None:
        for end in ends[: len(self.here.wire[NODE])]:
            self.here.answer(NODE, [end])
        self.turn(0.0)

    @precondition(lambda self: any(self.here.wire.values()))
    @rule(handled=st.integers(0, 5), arriving=st.booleans(), late=st.booleans())
    def disconnect(self, handled: int, arriving: bool, late: bool) -> None:
        self.here.disconnect(NODE, handled, late=late)
        if not arriving:
            self.here.late.clear()
        self.turn(2.0)

    @precondition(lambda self: self.here.questions)
    @rule(told=st.booleans())
    def answer_question(self, told: bool) -> None:
        self.here.answer_question(told=told)
        self.turn(0.0)

    @precondition(lambda self: self.here.late)
    @rule()
    def arrive_late(self) -> None:
        self.here.arrive_late()

    @rule(handled=st.integers(0, 3), told=st.booleans())
    def create_anew(self, handled: int, told: bool) -> None:
        self.here.create_anew(PLACE[0], handled=handled, told=told)

    @precondition(lambda self: self.here.may_forget_producers())
    @rule()
    def forget(self) -> None:
        self.here.forget_producers()

    def calm(self) -> None:
        """Until everything is in the log nothing goes wrong."""
        self.here.late.clear()
        self.metadata()
        while self.here.completer.incomplete or self.here.wire[NODE]:
            self.turn(2.0)
            while self.here.questions:
                self.here.answer_question()
            while self.here.wire[NODE]:
                self.here.answer(NODE, [])

    def forget_if_it_may(self) -> None:
        if self.here.may_forget_producers():
            self.here.forget_producers()

    @rule(new_log=st.booleans(), told=st.booleans(), ends=ends)
    def pause(self, new_log: bool, told: bool, ends: list[ErrorCode]) -> None:
        """All is well, and then nothing happens for long, but to the log."""
        self.calm()
        if new_log:
            self.here.create_anew(PLACE[0], handled=0, told=told)
        else:
            self.forget_if_it_may()
        self.send(3)
        self.answer(ends)

    @rule(ends=ends)
    def late_answer(self, ends: list[ErrorCode]) -> None:
        """The old log answers when the new one is known."""
        self.calm()
        self.send(1)
        self.here.create_anew(PLACE[0], handled=1, told=True)
        self.answer([ErrorCode.NONE])
        self.send(3)
        self.answer(ends)

    @rule(ends=ends)
    def trouble(self, ends: list[ErrorCode]) -> None:
        """A batch has to be sent again, when the broker has forgotten the producer; and another comes."""
        self.calm()
        self.send(1)
        self.answer([ErrorCode.NOT_ENOUGH_REPLICAS])
        self.forget_if_it_may()
        self.turn(2.0)
        self.send(1)
        self.answer(ends)

    @rule()
    def give_up(self) -> None:
        """The first of two batches is given up while both are still on their way."""
        self.calm()
        self.send(1)
        self.turn(10.0)
        self.send(1)
        due = self.here.completer.next_expiry()
        assert due is not None
        self.here.loop.now = due - 1
        self.here.disconnect(NODE, 0)
        self.expire()
        self.turn(2.0)
        self.answer([ErrorCode.NONE])
        while self.here.late:
            self.here.arrive_late()

    @rule()
    def metadata(self) -> None:
        self.here.follow()
        self.turn(0.0)

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


LogsMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=30)
TestLogs = LogsMachine.TestCase
