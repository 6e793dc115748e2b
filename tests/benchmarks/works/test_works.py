from __future__ import annotations

from benchmarks.works.curve_works import CURVE_WORKS
from benchmarks.works.works import WORKS


def test_quick_runs_and_slow_clients_have_fewer_records() -> None:
    for work in WORKS.values():
        assert 0 < work.records_of(1, quick=True) < work.records_of(1, quick=False) == work.records
        assert work.records_of(4, quick=False) == work.records // 4
        assert work.records_of(10**12, quick=True) == 1


def test_works_are_named_as_they_are_listed() -> None:
    assert all(work.name == name for name, work in {**WORKS, **CURVE_WORKS}.items())
    assert not WORKS.keys() & CURVE_WORKS.keys()
