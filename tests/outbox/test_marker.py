from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.outbox import PositionMismatchException
from aioproducer.outbox.marker import Marker
from aioproducer.outbox.position import Position, Progress, Snapshot
from aioproducer.types import OffsetAndMetadata
from tests.outbox.test_position import snapshots

POSITIONS = st.builds(Position, st.integers(0, 1 << 62), snapshots())
PROGRESS = st.one_of(st.builds(Progress, POSITIONS), st.builds(Progress, POSITIONS, POSITIONS, st.integers(0, 1 << 62)))


@given(PROGRESS)
def test_a_marker_is_read_as_it_was_committed(progress: Progress) -> None:
    marker = Marker("7.5", progress)
    committed = marker.as_offset()
    assert committed.offset == progress.newest
    assert Marker.read(committed, "n") == marker


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ("", "committed '', which is no position"),
        ("17", "committed '17', which is no position"),
        ("[1]", "which is no position"),
        ('{"v":1,"table":"7.5"}', "which is no position"),
        ('{"v":1,"table":"7.5","since":"5:1:1:z"}', "which is no position"),
        ('{"v":2,"table":"7.5","since":"0:1:0:"}', "the position of 'n' has version 2"),
    ],
)
def test_what_others_have_committed_is_refused(metadata: str, words: str) -> None:
    with pytest.raises(PositionMismatchException) as caught:
        Marker.read(OffsetAndMetadata(3, metadata), "n")
    assert words in str(caught.value)


def test_a_marker_may_be_too_long() -> None:
    def within(transactions: int) -> Progress:
        snapshot = Snapshot(1, 10**9, tuple(range(1, transactions * 1000, 1000)))
        return Progress(Position(5, snapshot), Position(6, snapshot), 5)

    assert Marker("7.5", within(400)).fits()
    assert not Marker("7.5", within(2000)).fits()
