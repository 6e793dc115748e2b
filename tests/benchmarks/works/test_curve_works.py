from __future__ import annotations

import dataclasses

import pytest

from benchmarks.works.curve_works import AXES, Axis


@pytest.mark.parametrize("axis", AXES.values(), ids=lambda axis: axis.name)
def test_along_an_axis_one_thing_changes(axis: Axis) -> None:
    changing = {"record-size": "record_size", "senders": "tasks"}.get(axis.name, axis.name)
    for where, work in axis.points:
        assert getattr(work, changing) == where
    same = [{**dataclasses.asdict(work), changing: 0, "name": "", "title": "", "records": 0} for _, work in axis.points]
    assert all(values == same[0] for values in same)


def test_ranges() -> None:
    ends = {name: (axis.points[0][0], axis.points[-1][0]) for name, axis in AXES.items() if name != "compression"}
    assert ends == {
        "record-size": (10, 950_000),
        "partitions": (1, 9_998),
        "topics": (1, 1_000),
        "senders": (1, 10_000),
    }
