"""Order, memory and progress, whatever happens to an accumulator, its schedule, its requests and their answers."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aioproducer.errors.error_code import ErrorCode
from tests.producer.simulations.rules_simulation import NODES, TOPICS, WINDOWS, Place, RulesSimulation

PLACES = [(topic, number) for topic, partitions in TOPICS.items() for number in range(partitions)]
REFUSALS = [
    *[ErrorCode.NONE] * 4,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_RECORD,
    ErrorCode.MESSAGE_TOO_LARGE,
]
place = st.sampled_from(PLACES)
node = st.sampled_from(NODES)


class RulesMachine(RuleBasedStateMachine):
    """Anything that can happen, in any order."""

    can_create_anew = True

    @initialize(
        linger=st.sampled_from([0.0, 0.0, 1.0, 30.0]),
        max_in_flight=st.sampled_from([1, 2, 5, 20, 20]),
        idempotent=st.sampled_from([True, True, False]),
        auto=st.booleans(),
    )
    def begin(self, linger: float, max_in_flight: int, idempotent: bool, auto: bool) -> None:
        self.here = RulesSimulation(linger=linger, max_in_flight=max_in_flight, idempotent=idempotent, auto=auto)

    @rule(sends=st.lists(st.tuples(place, st.sampled_from([0, 100, 450, 990, 1500])), min_size=1, max_size=6))
    def send(self, sends: list[tuple[Place, int]]) -> None:
        for where, size in sends:
            self.here.send(where, size)

    @rule(place=place, count=st.integers(2, 25))
    def burst(self, place: Place, count: int) -> None:
        """As many batches as the windows let out."""
        for _ in range(count):
            self.here.send(place, 0)
            self.turn(0.0)

    @rule(seconds=st.sampled_from([0.0, 0.05, 0.5, 2.0]))
    def turn(self, seconds: float) -> None:
        self.here.loop.now += seconds
        self.here.turn()
        self.here.check_nothing_forgotten()

    @precondition(lambda self: any(self.here.wire.values()))
    @rule(node=node, refusals=st.lists(st.sampled_from(REFUSALS), max_size=4), then_turn=st.booleans())
    def answer(self, node: int, refusals: list[ErrorCode], then_turn: bool) -> None:
        if self.here.wire[node]:
            self.here.answer(node, refusals)
        if then_turn:
            self.turn(0.0)

    @precondition(lambda self: any(self.here.wire.values()))
    @rule(node=node, handled=st.integers(0, 3), late=st.booleans())
    def disconnect(self, node: int, handled: int, late: bool) -> None:
        self.here.disconnect(node, handled, late=late)

    @rule(node=node, up=st.booleans())
    def reach(self, node: int, up: bool) -> None:
        """A link is lost or there again."""
        if not up:
            self.here.disconnect(node, 0)
        self.here.up[node] = up
        self.here.woken = True

    @precondition(lambda self: self.here.questions)
    @rule(told=st.booleans())
    def answer_question(self, told: bool) -> None:
        self.here.answer_question(told=told)

    @precondition(lambda self: self.here.late)
    @rule()
    def arrive_late(self) -> None:
        self.here.arrive_late()

    @rule(node=node, batches=st.sampled_from(WINDOWS))
    def remember(self, node: int, batches: int) -> None:
        self.here.remember(node, batches)

    @rule(place=place, leader=node, told=st.booleans())
    def elect(self, place: Place, leader: int, told: bool) -> None:
        self.here.move(place, leader, told=told)

    @precondition(lambda self: self.can_create_anew)
    @rule(topic=st.sampled_from(sorted(TOPICS)), handled=st.integers(0, 2), told=st.booleans())
    def create_anew(self, topic: str, handled: int, told: bool) -> None:
        self.here.create_anew(topic, handled=handled, told=told)

    @rule()
    def metadata(self) -> None:
        self.here.follow()

    @rule()
    def flush(self) -> None:
        self.here.flush()

    @precondition(lambda self: self.here.flushes)
    @rule()
    def end_flush(self) -> None:
        self.here.end_flush()

    @precondition(lambda self: self.here.completer.incomplete)
    @rule()
    def expire(self) -> None:
        due = self.here.completer.next_expiry()
        assert due is not None
        self.here.loop.now = max(self.here.loop.now, due)
        self.turn(0.0)

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "here"):
            self.here.check()

    @invariant()
    def sleeps_only_if_something_will_wake_it(self) -> None:
        """Between turns: what could go out has rung, or will."""
        if hasattr(self, "here") and not self.here.woken:
            self.here.check_nothing_forgotten()

    def teardown(self) -> None:
        if hasattr(self, "here"):
            self.here.settle()
            self.here.check_end()


RulesMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestRules = RulesMachine.TestCase
