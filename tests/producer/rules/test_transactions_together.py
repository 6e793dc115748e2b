"""Transactions of both protocols, whatever happens to their records, requests and partitions."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.transactions.state import TransactionState as S
from tests.producer.simulations.rules_simulation import NODES, Place
from tests.producer.simulations.transaction_simulation import TransactionSimulation

from .test_rules_together import REFUSALS, RulesMachine, place


class TransactionsMachine(RulesMachine):
    """Adds what users and coordinators do to all that can happen."""

    here: TransactionSimulation
    can_create_anew = False  # a transaction keeps its stamps, and order with them one batch at a time

    @initialize(
        linger=st.sampled_from([0.0, 1.0, 30.0]),
        max_in_flight=st.sampled_from([1, 5, 20]),
        protocol=st.sampled_from([1, 2]),
    )
    def begin(self, linger: float, max_in_flight: int, protocol: int) -> None:
        self.here = TransactionSimulation(linger=linger, max_in_flight=max_in_flight, protocol=protocol)

    @precondition(lambda self: self.here.state is S.READY)
    @rule()
    def begin_transaction(self) -> None:
        self.here.begin()

    @rule(place=place, count=st.integers(2, 12))
    def burst(self, place: Place, count: int) -> None:
        """In a transaction, and not held up by its beginning."""
        if self.here.state is S.READY:
            self.here.begin()
        self.here.send(place, 0)
        if self.here.joining:
            self.here.join(answered=True)
        super().burst(place, count)

    @precondition(lambda self: self.here.joining)
    @rule(answered=st.booleans())
    def join(self, answered: bool) -> None:
        self.here.join(answered=answered)

    @precondition(lambda self: self.here.state is S.IN_TRANSACTION)
    @rule()
    def commit(self) -> None:
        self.here.commit()

    @precondition(lambda self: self.here.state in (S.IN_TRANSACTION, S.ABORTABLE_ERROR))
    @rule()
    def abort(self) -> None:
        self.here.abort()

    @precondition(lambda self: self.here.flushes > self.here.ends())
    @rule()
    def end_flush(self) -> None:
        self.here.end_flush()

    @precondition(lambda self: self.here.may_end())
    @rule()
    def end(self) -> None:
        self.here.end()

    @precondition(lambda self: self.here.state in (S.IN_TRANSACTION, S.COMMITTING, S.ABORTING))
    @rule(refusals=st.lists(st.sampled_from(REFUSALS), max_size=4))
    def go_on(self, refusals: list[ErrorCode]) -> None:
        """Some quiet turns, so that transactions come to an end at all."""
        if self.here.joining:
            self.here.join(answered=True)
        for _ in range(4):
            self.turn(1.0)
            for node in NODES:
                if self.here.wire[node]:
                    self.here.answer(node, refusals)
            refusals = []
        if self.here.may_end():
            self.here.end()


TransactionsMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=40)
TestTransactions = TransactionsMachine.TestCase
