from __future__ import annotations

from benchmarks.works.line_works import LINE_CLIENTS, LINE_WORKS, MOST_RECORDS_PER_S, ROUND_TRIPS_MS, records_over
from benchmarks.works.works import WORKS


def test_works_are_named_as_they_are_listed() -> None:
    assert all(work.name == name for name, work in LINE_WORKS.items())
    assert not WORKS.keys() & LINE_WORKS.keys()
    assert {(work.partitions, work.round_trip_ms) for work in LINE_WORKS.values()} == {
        (partitions, far) for partitions in (1, 6) for far in ROUND_TRIPS_MS
    }


def test_runs_are_as_long_as_the_line_wants() -> None:
    assert records_over(1, 6, "franz-go") == MOST_RECORDS_PER_S * 0.8
    assert records_over(150, 1, "java") == 1228, "15 times what may be under way"
    for client in LINE_CLIENTS:
        assert all(records_over(far, 1, client) >= 1000 for far in ROUND_TRIPS_MS)
