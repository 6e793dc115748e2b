"""The meaning of a write's state: rules, without brokers."""

from __future__ import annotations

import dataclasses

import pytest

from aioproducer.admin import TransactionDescription
from aioproducer.spark.exactly_once.decision import Decision
from aioproducer.spark.exactly_once.marker import Marker
from aioproducer.spark.exactly_once.prepared import Prepared
from aioproducer.spark.exactly_once.write_state import Fate, WriteState

PREPARED = tuple(Prepared(partition, 0, 100 + partition, 4, True) for partition in range(3))
DECISION = Decision(5, 3, "0a", 3, PREPARED)
WRITTEN: dict[int, Marker | None] = {partition: Marker(5, 1, "0a") for partition in range(3)}


def state(
    decision: Decision | None = DECISION,
    markers: dict[int, Marker | None] | None = None,
    transactions: dict[str, TransactionDescription] | None = None,
    *,
    streaming: bool = True,
    unreadable: str | None = None,
) -> WriteState:
    return WriteState("w-all", "t-0", streaming, decision, unreadable, markers or {}, transactions or {})


def transaction(state: str, producer_id: int, producer_epoch: int) -> TransactionDescription:
    return TransactionDescription(state, producer_id, producer_epoch, 60_000, 1)


@pytest.mark.parametrize(
    ("marker", "described", "fate"),
    [
        (None, transaction("Ongoing", 101, 4), Fate.OPEN),
        (Marker(4, 1, "0a"), transaction("Ongoing", 101, 4), Fate.OPEN),
        (None, transaction("PrepareCommit", 101, 5), Fate.ENDING),
        (Marker(5, 1, "0a"), transaction("CompleteCommit", 101, 5), Fate.COMMITTED),
        (Marker(4, 1, "0a"), transaction("CompleteCommit", 101, 5), Fate.GONE),
        (None, transaction("CompleteCommit", 101, 5), Fate.GONE),
        (Marker(4, 1, "0a"), transaction("CompleteCommit", 101, 7), Fate.LOST),
        (Marker(5, 1, "0a"), transaction("Ongoing", 101, 6), Fate.COMMITTED),
        (Marker(6, 1, "0a"), None, Fate.COMMITTED),
        (Marker(4, 1, "0a"), transaction("CompleteAbort", 101, 5), Fate.LOST),
        (None, transaction("PrepareAbort", 101, 5), Fate.LOST),
        (None, transaction("Ongoing", 101, 5), Fate.LOST),
        (None, transaction("Ongoing", 102, 4), Fate.FORGOTTEN),
        (Marker(5, 1, "0a"), transaction("Ongoing", 102, 4), Fate.COMMITTED),
        (None, None, Fate.FORGOTTEN),
    ],
)
def test_the_fate_of_a_transaction_follows_from_marker_and_description(
    marker: Marker | None, described: TransactionDescription | None, fate: Fate
) -> None:
    found = state(markers={1: marker}, transactions={} if described is None else {"1.0": described})
    assert found.fate(PREPARED[1]) is fate
    assert PREPARED[1] in found.decided(fate)


def test_the_first_protocol_keeps_the_epoch_of_the_producer() -> None:
    one = PREPARED[0]._replace(second_protocol=False)
    found = state(
        dataclasses.replace(DECISION, prepared=(one,)), transactions={"0.0": transaction("PrepareCommit", 100, 4)}
    )
    assert found.fate(one) is Fate.ENDING


def test_open_transactions_are_decided_or_not() -> None:
    found = state(
        transactions={
            "0.0": transaction("Ongoing", 100, 4),
            "0.1": transaction("Ongoing", 200, 0),
            "1.0": transaction("Ongoing", 101, 5),
            "2.0": transaction("CompleteCommit", 102, 4),
            "all": transaction("Ongoing", 99, 0),
        }
    )
    assert list(found.open) == ["0.0", "0.1", "1.0", "all"]
    assert found.undecided == ["0.1", "1.0"]


ABORTED = {"1.0": transaction("CompleteAbort", 101, 5)}
COMMITTED = {f"{number}.0": transaction("CompleteCommit", 100 + number, 5) for number in range(3)}


@pytest.mark.parametrize(
    ("found", "epoch", "refused", "does"),
    [
        (state(None), 0, False, "writes all rows"),
        (state(None), 3, True, "fails with MissingMarkerException: epoch 3: group 'w-all' has no marker of epoch 2"),
        (state(None, streaming=False), 3, True, "has no marker of any earlier epoch"),
        (state(None, {1: Marker(0, 1, "0a")}), 0, True, "fails with MarkerMismatchException: epoch 0: partition 1 was"),
        (state(markers=WRITTEN), 4, True, "fails with MarkerMismatchException: epoch 4: epoch 5 was written already"),
        (state(markers=WRITTEN), 5, False, "writes nothing, and compares its rows with those that were decided"),
        (state(markers=WRITTEN), 6, False, "writes all rows"),
        (state(markers=WRITTEN), 7, True, "no marker of epoch 6"),
        (state(markers=WRITTEN, streaming=False), 7, False, "writes all rows"),
        (state(markers={**WRITTEN, 1: None}), 5, True, "MissingMarkerException: epoch 5: the rows of"),
        (state(markers={**WRITTEN, 1: None}), 6, True, "MissingMarkerException: epoch 6: the rows of"),
        (state(markers={**WRITTEN, 1: None}, transactions=ABORTED), 5, False, "writes the rows of partitions 1 again"),
        (state(markers={**WRITTEN, 1: None}, transactions=ABORTED), 6, True, "EpochIncompleteException: run epoch 5"),
        (state(transactions=COMMITTED), 5, True, "EpochLostException: the markers of epoch 5 are gone, of"),
        (state(transactions=COMMITTED), 6, True, "EpochLostException or EpochIncompleteException: the markers"),
        (state(Decision.set_by_hand(5)), 5, False, "compares nothing, because the marker was set by hand"),
        (state(unreadable="others use the name"), 6, True, "MarkerMismatchException: others use the name"),
    ],
)  # fmt: skip
def test_the_next_start(found: WriteState, epoch: int, refused: bool, does: str) -> None:
    start = found.next_start(epoch)
    assert (start.epoch, start.refused) == (epoch, refused)
    assert does in start.does


def test_the_next_start_ends_what_is_open() -> None:
    found = state(
        markers={1: Marker(5, 1, "0a"), 2: Marker(5, 1, "0a")},
        transactions={"0.0": transaction("Ongoing", 100, 4), "0.1": transaction("Ongoing", 200, 0)},
    )
    for epoch in (5, 6):
        assert found.next_start(epoch).does.endswith(
            "; commits 1 transactions of epoch 5; aborts 1 transactions without a decision"
        )
