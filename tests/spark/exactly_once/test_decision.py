"""The rules of decisions; ``test_epoch_commit.py`` and ``test_two_phases.py`` have what follows from them."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from aioproducer.errors import IllegalStateException
from aioproducer.spark.exactly_once.decision import (
    Decision,
    EpochIncompleteException,
    EpochNotCommittedException,
    check_none_is_missing,
    check_not_begun,
    check_open,
    check_order,
)
from aioproducer.spark.exactly_once.marker import Marker, MarkerMismatchException, MissingMarkerException
from aioproducer.spark.exactly_once.prepared import Outcome, Prepared
from aioproducer.types import OffsetAndMetadata

HELD = [Prepared(partition, 0, 1000 + partition, 4, True) for partition in range(3)]
OUTCOMES = [Outcome.held(10, f"{one.partition + 1:016x}", one) for one in HELD]
DECISION = Decision(7, 30, f"{6:016x}", 3, tuple(HELD))


def test_it_is_of_all_tasks_in_their_order() -> None:
    assert Decision.of(7, OUTCOMES[::-1], "here") == DECISION
    assert str(DECISION) == "30 rows (digest 0000000000000006) in 3 partitions"


def test_partitions_that_are_missing_or_have_found_another_decision() -> None:
    with pytest.raises(IllegalStateException, match=r"here: .* partitions \[0, 2\]"):
        Decision.of(7, [OUTCOMES[0], OUTCOMES[2]], "here")
    with pytest.raises(IllegalStateException, match="here: partition 1 found a decision that is gone"):
        Decision.of(7, [OUTCOMES[0], OUTCOMES[1]._replace(prepared=None)], "here")


@pytest.mark.parametrize("partitions", [1, 3, 400, 5000])
def test_a_decision_is_read_as_it_was_committed(partitions: int) -> None:
    many = tuple(Prepared(partition, 0, 1000 + 3 * partition, 4, False) for partition in range(partitions))
    decision = Decision(7, 30, "00ff", partitions, many)
    head, *pieces = decision.as_offsets()
    assert head.offset == 7
    assert all(len(piece.metadata) <= 4096 for piece in (head, *pieces)), "offset.metadata.max.bytes"
    assert Decision.pieces_of(head, "here") == len(pieces)
    assert Decision.read(head, pieces, "here") == decision


def test_pieces_of_two_decisions_are_not_put_together() -> None:
    first, second = (
        Decision(7, 30, "00ff", 1000, tuple(Prepared(n, 0, step * n, 4, True) for n in range(1000))).as_offsets()
        for step in (3, 4)
    )
    with pytest.raises(MarkerMismatchException, match=r"here: the pieces of its decision about epoch 7"):
        Decision.read(first[0], second[1:], "here")
    with pytest.raises(MarkerMismatchException, match="do not belong together"):
        Decision.read(first[0], [None] * len(first[1:]), "here")


@pytest.mark.parametrize("metadata", ["", "no JSON", '{"version":4}', '{"version":4,"epoch":1,"rows":1,"digest":"0"}'])
def test_metadata_of_others_are_refused(metadata: str) -> None:
    with pytest.raises(MarkerMismatchException, match=r"here: .* not a marker of this sink"):
        Decision.read(OffsetAndMetadata(3, metadata), [], "here")


def older(version: int) -> Decision:
    whole = f'{{"version":{version},"epoch":7,"rows":30,"digest":"0000000000000006","partitions":3,"run":"r"}}'
    read = Decision.read(OffsetAndMetadata(7, whole), [], "here")
    assert read is not None
    assert read.prepared == ()
    return read


def test_rows_are_compared_however_they_are_divided() -> None:
    other = Outcome(0, 30, f"{6:016x}", None)
    DECISION.check(OUTCOMES, "here")
    DECISION.check([other], "here")
    for wrong in (other._replace(rows=29), other._replace(digest="05")):
        with pytest.raises(MarkerMismatchException, match=r"here: it was committed with 30 rows .* and has "):
            DECISION.check([wrong], "here")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_digest_of_an_older_version_cannot_be_compared(version: int) -> None:
    wanted = rf"here: .* version {version} .* finish this epoch with the version that"
    with pytest.raises(MarkerMismatchException, match=wanted):
        older(version).check(OUTCOMES, "here")


def test_a_lost_transaction_is_replaced_by_the_same_rows_only() -> None:
    lost, there = [HELD[1]], {0: Marker(7, 10, "01"), 2: Marker(7, 10, "03")}
    spare = Prepared(1, 5, 2000, 0, True)
    again = [OUTCOMES[0]._replace(prepared=None), OUTCOMES[1]._replace(prepared=spare), OUTCOMES[2]]
    assert DECISION.again(lost, there, again, "here") == Decision(7, 30, f"{6:016x}", 3, (HELD[0], spare, HELD[2]))
    for wrong in (
        again[:2],
        [again[0], again[1]._replace(prepared=None), again[2]],
        [again[0], again[1]._replace(digest="09"), again[2]],
    ):
        with pytest.raises(EpochIncompleteException, match=r"here: the rows of 1 of 3 partitions \(1\) were aborted"):
            DECISION.again(lost, there, wrong, "here")
    with pytest.raises(EpochIncompleteException):
        DECISION.again(lost, {**there, 2: None}, again, "here")


def test_many_that_are_lost_are_not_all_named() -> None:
    many = tuple(Prepared(n, 0, n, 0, True) for n in range(30))
    with pytest.raises(EpochIncompleteException, match=r"of 30 of 30 partitions \(0, 1, .*, 19, …\)"):
        Decision(7, 1, "0", 30, many).again(many, {}, [], "here")


def test_an_epoch_must_follow_the_decided_one() -> None:
    check_order(None, 0, "here")
    check_order(DECISION, 7, "here")
    with pytest.raises(MarkerMismatchException, match="here: epoch 7 was written already: the checkpoint is older"):
        check_order(DECISION, 6, "here")


@pytest.mark.parametrize(
    ("last", "epoch", "streaming", "missing"),
    [
        (None, 0, True, False),
        (None, 1, True, True),
        (None, 1, False, True),
        (DECISION, 7, True, False),
        (DECISION, 8, True, False),
        (DECISION, 9, True, True),
        (DECISION, 9, False, False),
    ],
)
def test_decisions_that_are_missing(last: Decision | None, epoch: int, streaming: bool, missing: bool) -> None:
    expected = pytest.raises(MissingMarkerException, match=r"^here: group 'g' has no marker of ")
    with expected if missing else nullcontext():
        check_none_is_missing(last, epoch, "here", group="g", place="t-0", streaming=streaming)


def test_rows_that_are_there_without_a_decision() -> None:
    check_not_begun(None, 1, 7, "here")
    check_not_begun(Marker(6, 1, "00"), 1, 7, "here")
    with pytest.raises(MarkerMismatchException, match="here: partition 1 was committed with 1 rows"):
        check_not_begun(Marker(7, 1, "00", version=2), 1, 7, "here")


def test_transactions_must_be_open_for_a_tenth_of_their_time() -> None:
    check_open(HELD, [1000, 900, 100], 1000, "here")
    with pytest.raises(
        EpochNotCommittedException, match=r"partition 2 has 99 ms left, of transaction\.timeout\.ms = 1000"
    ):
        check_open(HELD, [1000, 900, 99], 1000, "here")
    with pytest.raises(
        EpochNotCommittedException,
        match=r"partition 1 is no longer open: brokers have aborted it after transaction\.timeout\.ms = 1000, or "
        r"another attempt, driver or write of this name has ended it\. Nothing",
    ):
        check_open(HELD, [1000, None, 1000], 1000, "here")
