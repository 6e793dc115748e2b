from __future__ import annotations

import pytest

from aioproducer.spark.marker import Marker, MarkerMismatchException, WholeMarker
from aioproducer.types import OffsetAndMetadata

MARKER = Marker(7, 1000, "00ff")


def test_it_is_read_as_it_was_committed() -> None:
    committed = MARKER.as_offset()
    assert committed.offset == 7, "which tools show"
    assert Marker.read(committed, "here") == MARKER
    assert Marker.read(None, "here") is None


@pytest.mark.parametrize("metadata", ["", "no JSON", "[]", "{}", '{"epoch":1}', '{"version":1}', "5"])
def test_metadata_of_others_are_refused(metadata: str) -> None:
    with pytest.raises(MarkerMismatchException, match=r"here: its group has committed .* no marker"):
        Marker.read(OffsetAndMetadata(3, metadata), "here")


def test_a_marker_of_another_version_is_not_taken_for_somebody_elses() -> None:
    later = OffsetAndMetadata(3, '{"version":3,"epoch":3,"what":"is to come"}')
    with pytest.raises(
        MarkerMismatchException, match="here: its marker has version 3, and this sink reads version 2 and older"
    ):
        Marker.read(later, "here")


def test_a_marker_with_the_digest_of_version_1_is_good_for_later_epochs_only() -> None:
    older = Marker.read(OffsetAndMetadata(7, '{"version":1,"epoch":7,"rows":1000,"digest":"00ff"}'), "here")
    assert older is not None
    assert not older.is_of(8, "here")
    assert older.is_of(7, "here")
    with pytest.raises(MarkerMismatchException, match=r"here: .* version 1 .* finish this epoch with the version that"):
        older.check(MARKER, "here")
    with pytest.raises(MarkerMismatchException, match="epoch 7 was written already"):
        older.is_of(6, "here")


def test_a_whole_marker_is_read_as_it_was_committed() -> None:
    whole = WholeMarker(7, 1000, "00ff", 3, "run")
    assert WholeMarker.read(whole.as_offset(), "here") == whole
    assert '"version":2' in whole.as_offset().metadata


def test_which_epoch_it_is_of() -> None:
    assert MARKER.is_of(7, "here")
    assert not MARKER.is_of(8, "here")
    with pytest.raises(MarkerMismatchException, match="here: epoch 7 was written already: the checkpoint is older"):
        MARKER.is_of(6, "here")


@pytest.mark.parametrize("again", [Marker(7, 999, "00ff"), Marker(7, 1000, "00fe")])
def test_rows_that_are_others_are_told(again: Marker) -> None:
    MARKER.check(Marker(7, 1000, "00ff"), "here")
    with pytest.raises(MarkerMismatchException, match=r"it was committed with 1000 rows \(digest 00ff\), and has "):
        MARKER.check(again, "here")
