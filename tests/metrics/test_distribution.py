from __future__ import annotations

from bisect import bisect_right
from functools import reduce
from operator import add

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.metrics import MetricName
from aioproducer.metrics.distribution import Distribution

BOUNDS = (0.5, 1.0, 2.0)


def counted(values: list[float]) -> Distribution:
    made = Distribution(MetricName("d", "g"), "what it is", BOUNDS)
    for value in values:
        made.record(value)
    return made


def test_without_values() -> None:
    assert counted([]).buckets() == (MetricName("d", "g"), "what it is", BOUNDS, [0, 0, 0, 0], 0.0)


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 0.6, 1.0, 1.5, 2.0, 2.1, 1e300])))
def test_each_count_is_of_all_values_up_to_its_bound(values: list[float]) -> None:
    found = counted(values).buckets()
    assert list(found.counts) == [*(bisect_right(sorted(values), bound) for bound in BOUNDS), len(values)]
    assert found.sum == reduce(add, values, 0.0)  # sum() loses less from Python 3.12 on


@given(*[st.lists(st.floats(0, 3))] * 2)
def test_the_counts_of_two_add_up(one: list[float], other: list[float]) -> None:
    parts = counted(one).buckets(), counted(other).buckets()
    together = counted([*one, *other]).buckets().counts
    assert [sum(pair) for pair in zip(*(part.counts for part in parts), strict=True)] == together


def test_a_snapshot_does_not_change() -> None:
    made = counted([1.0])
    before = made.buckets()
    made.record(1.0)
    assert before.counts[-1] == 1
