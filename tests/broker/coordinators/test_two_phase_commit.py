"""Two-phase commit (KIP-939) at the coordinator: whatever happens, a transaction ends once, and as its owner says.

A kept transaction follows Kafka's pull request 21735, because no release up to 4.3.1 keeps one.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.coordinators.group_offsets import GroupOffsets
from aioproducer.broker.coordinators.transaction_coordinator import NOBODY, Identity, TransactionCoordinator
from aioproducer.broker.requests.slices import Slices
from aioproducer.broker.state.cluster_nodes import Node
from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.state.topic import NewTopic
from aioproducer.broker.state.transaction_metadata import LAST_USABLE_EPOCH, NEVER_MS, TransactionState
from aioproducer.errors import (
    ApiException,
    ConcurrentTransactionsException,
    InvalidRequestException,
    InvalidTxnStateException,
    InvalidTxnTimeoutException,
    ProducerFencedException,
    TransactionalIdAuthorizationException,
)
from tests.support.manual_clock import ManualClock

PARTITIONS = 3


def make(*, allowed: bool = True) -> tuple[ClusterState, TransactionCoordinator]:
    clock = ManualClock()
    state = ClusterState([0], BrokerConfig.of({"transaction.two.phase.commit.enable": allowed}), Random(0))
    state.node_started(0, {"PLAINTEXT": Node(0, "localhost", 9092)})
    state.create_topic(NewTopic("t", PARTITIONS))
    return state, TransactionCoordinator(state, GroupOffsets(), clock, Slices(clock))


def init(transactions: TransactionCoordinator, *, keep: bool = False, expected: Identity = NOBODY) -> Any:
    return transactions.init_producer_id("x", 60_000, expected, two_phases=True, keep=keep)


def markers(state: ClusterState) -> list[list[tuple[int, int, bool]]]:
    """Of each partition, the id, the epoch, and whether it says commit."""
    return [
        [
            (batch.producer_id, batch.producer_epoch, record.key is not None and record.key[3] == 1)
            for batch in partition.log.batches()
            for record in batch.records()
        ]
        for partition in state.topics["t"].partitions
    ]


class TestKept:
    def test_the_owner_moves_on_and_the_transaction_stays(self) -> None:
        state, transactions = make()
        (producer_id, epoch), ongoing = init(transactions)
        assert ongoing == NOBODY
        transactions.add_partitions("x", (producer_id, epoch), [("t", 0)])
        for further in range(1, 4):
            assert init(transactions, keep=True) == ((producer_id, epoch + further), (producer_id, epoch))
        metadata = transactions.transaction("x")
        assert metadata is not None
        assert metadata.timeout_ms == NEVER_MS
        assert metadata.described_as == (producer_id, epoch)
        assert transactions.end("x", (producer_id, epoch + 3), committed=True, bump=True) == (producer_id, epoch + 4)
        assert markers(state)[0] == [(producer_id, epoch + 1, True)]
        assert metadata.described_as == metadata.identity == (producer_id, epoch + 4)
        assert transactions.end("x", (producer_id, epoch + 3), committed=True, bump=True) == (producer_id, epoch + 4)
        assert len(markers(state)[0]) == 1, "a retry after a lost answer"

    def test_nothing_is_added(self) -> None:
        _, transactions = make()
        first, _ = init(transactions)
        transactions.add_partitions("x", first, [("t", 0)])
        transactions.add_group("x", first, "g")
        newer, _ = init(transactions, keep=True)
        for add in (
            lambda: transactions.add_partitions("x", newer, [("t", 1)]),
            lambda: transactions.add_group("x", newer, "g"),
            lambda: transactions.check_partition("x", newer, ("t", 0)),
            lambda: transactions.check_group("x", newer, "g"),
        ):
            with pytest.raises(InvalidTxnStateException, match="can only be ended"):
                add()
        with pytest.raises(ProducerFencedException):
            transactions.add_partitions("x", first, [("t", 1)])

    @pytest.mark.parametrize("distance", range(4))
    def test_the_epochs_are_used_up(self, distance: int) -> None:
        """The producer id changes, and the markers have the id of the records."""
        state, transactions = make()
        init(transactions)
        metadata = transactions.transaction("x")
        assert metadata is not None
        metadata.producer_epoch = LAST_USABLE_EPOCH - distance
        first = metadata.identity
        transactions.add_partitions("x", first, [("t", 0)])
        for _ in range(2):
            newer, ongoing = init(transactions, keep=True)
            assert ongoing == first
        assert (newer[0] != first[0]) is (distance < 2)
        after = transactions.end("x", newer, committed=False, bump=True)
        assert (after[0] != first[0]) is (distance < 3)
        assert markers(state)[0] == [(first[0], first[1] + 1, False)]

    def test_without_keeping_it_is_aborted(self) -> None:
        state, transactions = make()
        first, _ = init(transactions)
        transactions.add_partitions("x", first, [("t", 0)])
        newer, _ = init(transactions, keep=True)
        with pytest.raises(ConcurrentTransactionsException):
            init(transactions)
        assert markers(state)[0] == [(first[0], first[1] + 1, False)]
        newest, ongoing = init(transactions, keep=True)
        assert ongoing == NOBODY
        assert newest > newer


def test_it_must_be_allowed() -> None:
    _, transactions = make(allowed=False)
    with pytest.raises(
        TransactionalIdAuthorizationException, match=r"transaction\.two\.phase\.commit\.enable is false"
    ):
        init(transactions)
    assert transactions.transaction("x") is None


def test_only_transactions_of_two_phases_are_kept() -> None:
    _, transactions = make()
    with pytest.raises(InvalidRequestException, match="two-phase commit"):
        transactions.init_producer_id("x", 60_000, NOBODY, keep=True)


@pytest.mark.parametrize("timeout_ms", [-1, 0, 1, 900_000, 900_001, 2**31 - 1])
def test_the_time_out_that_is_asked_for_does_not_matter(timeout_ms: int) -> None:
    _, transactions = make()
    transactions.init_producer_id("x", timeout_ms, NOBODY, two_phases=True)
    metadata = transactions.transaction("x")
    assert metadata is not None
    assert metadata.timeout_ms == NEVER_MS
    if not 1 <= timeout_ms <= 900_000:
        with pytest.raises(InvalidTxnTimeoutException):
            transactions.init_producer_id("x", timeout_ms, NOBODY)


class Ownership(RuleBasedStateMachine):
    """Producers come and go under one transactional id, and all of them go on to try."""

    def __init__(self) -> None:
        super().__init__()
        self.state, self.transactions = make()
        self.given: list[Identity] = []
        """Every identity that a producer was given; the last one is the owner's."""
        self.begun_as: Identity | None = None
        """The open transaction."""
        self.partitions: set[int] = set()
        self.expected: list[list[tuple[int, int, bool]]] = [[] for _ in range(PARTITIONS)]

    @initialize(bump=st.booleans(), distance=st.integers(0, 6))
    def first(self, bump: bool, distance: int) -> None:
        self.bump = bump
        init(self.transactions)
        metadata = self.transactions.transaction("x")
        assert metadata is not None
        metadata.producer_epoch = LAST_USABLE_EPOCH - distance
        self.given.append(metadata.identity)

    def _ended(self, *, committed: bool, epochs: int) -> None:
        assert self.begun_as is not None
        for partition in self.partitions:
            self.expected[partition].append((self.begun_as[0], self.begun_as[1] + epochs, committed))
        self.begun_as, self.partitions = None, set()

    @rule(keep=st.booleans(), resumes=st.booleans())
    def init(self, keep: bool, resumes: bool) -> None:
        expected = self.given[-1] if resumes else NOBODY
        if self.begun_as is not None and not keep:
            with pytest.raises(ConcurrentTransactionsException):
                init(self.transactions)
            self._ended(committed=False, epochs=1)
            expected = NOBODY
        identity, ongoing = init(self.transactions, keep=keep, expected=expected)
        assert ongoing == (self.begun_as or NOBODY)
        assert identity not in self.given
        self.given.append(identity)

    @rule(partition=st.integers(0, PARTITIONS - 1), who=st.integers(0, 10))
    def write(self, partition: int, who: int) -> None:
        identity = self.given[-1 - min(who, len(self.given) - 1)]
        if identity == self.given[-1] and self.begun_as in (None, identity):
            self.transactions.add_partitions("x", identity, [("t", partition)])
            self.begun_as = identity
            self.partitions.add(partition)
        else:
            with pytest.raises(ApiException):
                self.transactions.add_partitions("x", identity, [("t", partition)])

    @precondition(lambda self: self.begun_as is not None)
    @rule(committed=st.booleans())
    def end(self, committed: bool) -> None:
        after = self.transactions.end("x", self.given[-1], committed=committed, bump=self.bump)
        self._ended(committed=committed, epochs=int(self.bump))
        assert (after != self.given[-1]) is self.bump
        if self.bump:
            self.given.append(after)

    @precondition(lambda self: len(self.given) > 1)
    @rule(committed=st.booleans(), who=st.integers(1, 10))
    def end_as_another(self, committed: bool, who: int) -> None:
        """An error, or the answer to a retry; it has no effect."""
        identity = self.given[-1 - min(who, len(self.given) - 1)]
        try:
            self.transactions.end("x", identity, committed=committed, bump=self.bump)
        except ApiException:
            return
        metadata = self.transactions.transaction("x")
        assert metadata is not None
        wanted = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
        assert (metadata.state, identity) == (wanted, metadata.previous)

    @invariant()
    def every_transaction_ended_as_its_owner_said(self) -> None:
        assert markers(self.state) == self.expected

    @invariant()
    def no_time_out_runs(self) -> None:
        assert len(self.transactions._timers) == 0


TestOwnership: Any = Ownership.TestCase
TestOwnership.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
