from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.outbox.position import NOTHING, Position, Progress, Snapshot

XIDS = st.integers(1, 1 << 63)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    xmin = draw(XIDS)
    span = draw(st.integers(0, 500))
    xip = draw(st.sets(st.integers(xmin, xmin + span - 1))) if span else set()
    return Snapshot(xmin, xmin + span, tuple(sorted(xip)))


@given(snapshots())
def test_a_snapshot_survives_both_forms(snapshot: Snapshot) -> None:
    assert Snapshot.parse(str(snapshot)) == snapshot
    assert Snapshot.unpack(snapshot.pack()) == snapshot


@given(snapshots(), st.integers(-5, 505))
def test_a_snapshot_sees_what_had_ended(snapshot: Snapshot, step: int) -> None:
    xid = snapshot.xmin + step
    ended = xid < snapshot.xmax and xid not in snapshot.xip
    assert snapshot.sees(xid) == ended


@pytest.mark.parametrize("text", ["", "1", "5:4:", "0:1:", "1:5:0", "1:5:5", "1:9:3,2", "1:9:3,3", "a:b:c", "1:2:3:4"])
def test_what_is_no_snapshot_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Snapshot.parse(text)


@pytest.mark.parametrize("text", ["", "1", "1:", "1:0:", "5:1:-1:", "5:1:1:z", "5:1:1:0.0", "x:1:1:"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Position.unpack(text)


def test_a_snapshot_with_hundreds_of_open_transactions_is_short() -> None:
    snapshot = Snapshot(10**12, 10**12 + 2000, tuple(range(10**12, 10**12 + 2000, 4)))
    assert len(str(snapshot)) > 7000
    assert len(snapshot.pack()) < 1100


class Commits:
    """Transactions that draw ids and commit at any time, and a relay that takes windows and pages of any size."""

    def __init__(self) -> None:
        self.next_id = self.next_xid = 1
        self.open: dict[int, list[int]] = {}
        self.rows: list[tuple[int, int]] = []
        """Committed rows, as id and xid."""

    def begin(self) -> None:
        self.open[self.next_xid] = []
        self.next_xid += 1

    def insert(self, xid: int) -> None:
        self.open[xid].append(self.next_id)
        self.next_id += 1

    def end(self, xid: int, committed: bool) -> None:
        ids = self.open.pop(xid)
        self.rows += [(row_id, xid) for row_id in ids if committed]

    def here(self, since: Position) -> Position:
        xmin = min(self.open, default=self.next_xid)
        snapshot = Snapshot(xmin, self.next_xid, tuple(sorted(self.open)))
        return Position(max([since.last, *(row_id for row_id, _ in self.rows)]), snapshot)


@given(st.data())
def test_whatever_commits_when_every_row_is_relayed_once_and_after_what_it_followed(data: st.DataObject) -> None:
    """Rows are relayed one at a time here, and a relay may begin anew at each: from the progress, packed."""
    commits, progress, relayed = Commits(), Progress(), []
    followed: dict[int, set[int]] = {}
    """By id, the rows whose transactions had ended when it was drawn: what it may depend on."""
    for _ in range(data.draw(st.integers(0, 60))):
        step = data.draw(st.sampled_from(["begin", "insert", "end", "end", "relay", "relay"]))
        if step == "begin":
            commits.begin()
        elif step == "relay":
            if progress.until is None:
                progress = progress.to(commits.here(progress.since))
            until = progress.until
            assert until is not None
            window = sorted(row for row in commits.rows if until.has(*row) and not progress.has(*row))
            if not window:
                progress = progress.ended()
                continue
            relayed.append(window[0])
            progress = progress.past(window[0][0])
        elif commits.open:
            xid = data.draw(st.sampled_from(sorted(commits.open)))
            if step == "insert":
                followed[commits.next_id] = {row_id for row_id, _ in commits.rows}
                commits.insert(xid)
            else:
                commits.end(xid, committed=data.draw(st.booleans()))
        for row in commits.rows:
            assert progress.has(*row) == (row in relayed)
    assert len(relayed) == len(set(relayed))
    ids = [row_id for row_id, _ in relayed]
    for at, row_id in enumerate(ids):
        assert followed[row_id] <= set(ids[:at]), "what had been committed before is relayed before"


def test_a_transaction_id_that_a_crash_has_freed_is_no_reason_to_skip() -> None:
    """PostgreSQL flushes no record of a transaction that only aborts, so after a crash it may assign the id again."""
    position = Position(7, Snapshot(100, 120, (110,)))
    assert position.has(7, 105)
    assert not position.has(8, 105), "the id is new, whatever the transaction's id says"
    assert not position.has(6, 110)
    assert not position.has(6, 120)
    assert not Progress().has(1, 3)
    assert not NOTHING.sees(1)


def test_progress_in_a_window() -> None:
    since, until = Position(5, Snapshot(10, 20, (12,))), Position(9, Snapshot(12, 30, (12, 25)))
    progress = Progress(since).to(until)
    assert (progress.newest, progress.has(5, 11), progress.has(6, 20)) == (5, True, False)
    progress = progress.past(7)
    assert (progress.newest, progress.has(6, 20), progress.has(8, 21), progress.has(6, 25)) == (7, True, False, False)
    assert progress.ended() == Progress(until)
    assert Progress(since).ended() == Progress(since)
    assert Position.unpack(until.pack()) == until
