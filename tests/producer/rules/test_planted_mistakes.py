"""Mistakes that are made on purpose in the rules of sending: what watches over them finds each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.idempotence import sequences
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.windows.in_flight_windows import InFlightWindows
from aioproducer.records.batch_layout import increment_sequence
from tests.producer.simulations.standing_loop import sequences_of
from tests.support.compiled import interpreted_only

from .test_logs_together import LogsMachine
from .test_rules_together import RulesMachine
from .test_transactions_together import TransactionsMachine
from .test_windows_together import WindowsMachine

pytestmark = [pytest.mark.once, pytest.mark.timeout(300)]

Plant = Callable[[pytest.MonkeyPatch], None]


def a_number_left_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        sequences, "increment_sequence", lambda sequence, by: increment_sequence(sequence, by + (sequence > 2))
    )


def a_gap_is_overlooked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionSequences, "break_off", lambda self: None)


def a_lost_batch_counts_as_written(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: PartitionSequences, batch: ProducerBatch, *, refused: bool = False) -> None:
        self.resolve(batch)

    patch.setattr(PartitionSequences, "abandon", wrong)


def epochs_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: PartitionSequences, mine: ProducerIdAndEpoch, current: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        return mine

    patch.setattr(PartitionSequences, "_next_identity", wrong)


def sequences_go_on_over_epochs(patch: pytest.MonkeyPatch) -> None:
    right = PartitionSequences.stamp

    def wrong(self: PartitionSequences, batch: ProducerBatch, now: float, now_ms: int) -> None:
        if self._ids.transactional and self.identity is not None:
            self.identity = self._ids.current
        right(self, batch, now, now_ms)

    patch.setattr(PartitionSequences, "stamp", wrong)


def windows_are_of(patch: pytest.MonkeyPatch, window: Callable[[PartitionSequences], int]) -> None:
    """Whatever is announced, this is kept to."""
    right = PartitionSequences.may_drain_new

    def wrong(self: PartitionSequences, *batch: Any) -> bool:
        announced, self.window = self.window, window(self)
        try:
            return right(self, *batch)
        finally:
            self.window = announced

    patch.setattr(PartitionSequences, "may_drain_new", wrong)


def no_window(patch: pytest.MonkeyPatch) -> None:
    windows_are_of(patch, lambda sequences: 10**9)


def one_more_than_the_window(patch: pytest.MonkeyPatch) -> None:
    windows_are_of(patch, lambda sequences: sequences.window + 1)


def what_is_resolved_leaves_the_window(patch: pytest.MonkeyPatch) -> None:
    """Out of order, too: then the lowest may be further back than the broker remembers."""

    def window(sequences: PartitionSequences) -> int:
        first = sequences._places[0] if sequences.unresolved else sequences._stamped
        return sequences.window + sequences._stamped - first - len(sequences.unresolved)

    windows_are_of(patch, window)


def windows_never_shrink(patch: pytest.MonkeyPatch) -> None:
    right = InFlightWindows.announced

    def wrong(self: InFlightWindows, queue: PartitionQueue, node: int, window: int) -> None:
        right(self, queue, node, max(window, sequences_of(queue).window))

    patch.setattr(InFlightWindows, "announced", wrong)


def windows_survive_a_new_leader(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InFlightWindows, "leader_changed", lambda self, queue: None)


def windows_survive_a_lost_connection(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InFlightWindows, "connection_lost", lambda self, node: None)


def retries_wait_for_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionSequences, "is_lowest", lambda self, batch: True)


def nothing_is_in_doubt(patch: pytest.MonkeyPatch) -> None:
    """What waits to be sent again is forgotten."""
    right = PartitionSequences.may_drain_new, PartitionSequences._remove

    def wrong(self: PartitionSequences, *batch: Any) -> bool:
        self.unresolved, self._places = [], []
        return right[0](self, *batch)

    def remove(self: PartitionSequences, batch: ProducerBatch) -> None:
        if batch in self.unresolved:
            right[1](self, batch)

    patch.setattr(PartitionSequences, "may_drain_new", wrong)
    patch.setattr(PartitionSequences, "_remove", remove)


def stamps_outlive_their_log(patch: pytest.MonkeyPatch) -> None:
    right = PartitionSequences.log_is_new
    patch.setattr(PartitionSequences, "log_is_new", lambda self, *, proven, **how: right(self, proven=False))


def any_log_may_answer(patch: pytest.MonkeyPatch) -> None:
    right = PartitionSequences.resolve

    def wrong(self: PartitionSequences, batch: ProducerBatch) -> None:
        batch.log = self.log
        right(self, batch)

    patch.setattr(PartitionSequences, "resolve", wrong)


def a_pause_changes_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionSequences, "_has_paused", lambda self, now: False)


def new_batches_go_beside_retries(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionSequences, "interrupted", lambda self: None)
    patch.setattr(PartitionSequences, "sent_again", lambda self, batch, now, now_ms: None)


def what_is_behind_keeps_its_stamp(patch: pytest.MonkeyPatch) -> None:
    right = PartitionSequences.unstamp

    def wrong(self: PartitionSequences, batch: ProducerBatch) -> None:
        right(self, batch)
        self._void = False

    patch.setattr(PartitionSequences, "unstamp", wrong)
    patch.setattr(PartitionSequences, "_unstamp_waiting", lambda self: None)


def out_of_order_always_proves_absence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionSequences, "proves_absence", lambda self, batch, now: True)


LOGS: list[Plant] = [
    stamps_outlive_their_log,
    any_log_may_answer,
    a_pause_changes_nothing,
    new_batches_go_beside_retries,
    what_is_behind_keeps_its_stamp,
    out_of_order_always_proves_absence,
]
ORDER: list[Plant] = [
    a_number_left_out,
    a_gap_is_overlooked,
    a_lost_batch_counts_as_written,
    epochs_are_not_counted,
]
WINDOWS: list[Plant] = [
    no_window,
    one_more_than_the_window,
    what_is_resolved_leaves_the_window,
    windows_never_shrink,
    windows_survive_a_new_leader,
    windows_survive_a_lost_connection,
    nothing_is_in_doubt,
    retries_wait_for_nobody,
]
TRANSACTIONS: list[Plant] = [
    a_number_left_out,
    sequences_go_on_over_epochs,
]
PLANTED: list[tuple[type[RuleBasedStateMachine], Plant]] = [
    *((LogsMachine, plant) for plant in LOGS),
    *((RulesMachine, plant) for plant in ORDER),
    *((WindowsMachine, plant) for plant in WINDOWS),
    *((TransactionsMachine, plant) for plant in TRANSACTIONS),
]


@interpreted_only
@pytest.mark.parametrize(("machine", "plant"), PLANTED, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found(
    machine: type[RuleBasedStateMachine], plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    hard_enough = settings(
        machine.TestCase.settings,
        max_examples=20 * machine.TestCase.settings.max_examples,  # it ends with the first that finds the mistake
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=hard_enough)
