"""Mistakes that are made on purpose in the rules of sending: what watches over them finds each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from aioproducer.producer import sequences
from aioproducer.producer.producer_batch import ProducerBatch
from aioproducer.producer.sequences import PartitionSequences, ProducerIdAndEpoch

from .test_rules_together import RulesMachine
from .test_transactions_together import TransactionsMachine

pytestmark = pytest.mark.timeout(300)

Plant = Callable[[pytest.MonkeyPatch], None]


def a_number_left_out(patch: pytest.MonkeyPatch) -> None:
    right = sequences.increment_sequence
    patch.setattr(sequences, "increment_sequence", lambda sequence, by: right(sequence, by + (sequence > 2)))


def a_gap_is_overlooked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionSequences, "_break", lambda self: None)


def a_lost_batch_counts_as_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionSequences, "abandon", PartitionSequences.resolve)


def epochs_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: PartitionSequences, mine: ProducerIdAndEpoch, current: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        return mine

    patch.setattr(PartitionSequences, "_next_identity", wrong)


def sequences_go_on_over_epochs(patch: pytest.MonkeyPatch) -> None:
    right = PartitionSequences.stamp

    def wrong(self: PartitionSequences, batch: ProducerBatch) -> None:
        if self._ids.transactional and self.identity is not None:
            self.identity = self._ids.current
        right(self, batch)

    patch.setattr(PartitionSequences, "stamp", wrong)


ORDER: list[Plant] = [
    a_number_left_out,
    a_gap_is_overlooked,
    a_lost_batch_counts_as_written,
    epochs_are_not_counted,
]
TRANSACTIONS: list[Plant] = [
    a_number_left_out,
    sequences_go_on_over_epochs,
]
PLANTED: list[tuple[type[RuleBasedStateMachine], Plant]] = [
    *((RulesMachine, plant) for plant in ORDER),
    *((TransactionsMachine, plant) for plant in TRANSACTIONS),
]


@pytest.mark.parametrize(("machine", "plant"), PLANTED, ids=lambda one: one.__name__)
def test_it_is_found(machine: type[RuleBasedStateMachine], plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    thorough = settings(
        max_examples=500,
        stateful_step_count=50,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=thorough)
