from __future__ import annotations

import pytest

from aioproducer.spark.exactly_once.marker import Marker, MarkerMismatchException
from aioproducer.types import OffsetAndMetadata

MARKER = Marker(7, 1000, "00ff")


def test_a_marker_is_read_as_it_was_committed() -> None:
    committed = MARKER.as_offset()
    assert committed.offset == 7, "which tools show"
    assert '"version":4' in committed.metadata
    assert Marker.read(committed, "here") == MARKER
    assert Marker.read(None, "here") is None
    assert str(MARKER) == "1000 rows (digest 00ff)"


@pytest.mark.parametrize("metadata", ["", "no JSON", "[]", "{}", '{"epoch":1}', '{"version":1}', "5"])
def test_metadata_of_others_are_refused(metadata: str) -> None:
    with pytest.raises(MarkerMismatchException, match=r"here: its group has committed .* not a marker"):
        Marker.read(OffsetAndMetadata(3, metadata), "here")


def test_a_marker_of_another_version_is_not_taken_for_somebody_elses() -> None:
    later = OffsetAndMetadata(3, '{"version":5,"epoch":3,"what":"is to come"}')
    with pytest.raises(
        MarkerMismatchException, match="here: its marker has version 5, and this sink reads version 4 and older"
    ):
        Marker.read(later, "here")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_marker_of_an_older_version_is_read(version: int) -> None:
    older = OffsetAndMetadata(7, f'{{"version":{version},"epoch":7,"rows":1000,"digest":"00ff"}}')
    assert Marker.read(older, "here") == Marker(7, 1000, "00ff", version=version)
