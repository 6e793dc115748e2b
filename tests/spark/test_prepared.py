from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.spark.prepared import Outcome, Prepared, packed, prepared_of, slot_named, unpacked

ONES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.booleans()))


@given(ONES)
def test_what_is_packed_is_unpacked(ones: list[tuple[int, int, int, bool]]) -> None:
    prepared = tuple(Prepared(partition, *one) for partition, one in enumerate(ones))
    assert unpacked(packed(prepared)) == prepared


def test_thousands_take_about_eight_characters_each() -> None:
    prepared = [Prepared(partition, 0, 2_000_000 + partition * 37 % 4000, 200, True) for partition in range(4000)]
    assert len(packed(prepared)) < 8.5 * 4000


@pytest.mark.parametrize("text", ["no base64!", "AAA=", "AAA", "gA=="])
def test_what_was_not_packed_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        unpacked(text)


def test_names_of_slots() -> None:
    one = Prepared(12, 3, 1000, 0, False)
    assert one.name == "12.3"
    assert slot_named(one.name) == (12, 3)
    assert [slot_named(name) for name in ("12", "all", "5-0.0", "0.0.0", "-1.0", "a.0", "")] == [None] * 7


def test_of_outcomes_those_that_hold_something() -> None:
    one = Prepared(1, 0, 1000, 0, True)
    assert prepared_of([Outcome(0, 5, "00", None), Outcome.held(5, "00", one)]) == [one]
