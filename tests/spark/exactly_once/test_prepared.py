from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aioproducer.spark.exactly_once.prepared import (
    Outcome,
    Prepared,
    names_of,
    packed,
    prepared_of,
    slot_named,
    unpacked,
)

ONES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.booleans()))


@given(ONES)
def test_prepared_transactions_are_unpacked_as_they_were_packed(ones: list[tuple[int, int, int, bool]]) -> None:
    prepared = tuple(Prepared(partition, *one) for partition, one in enumerate(ones))
    assert unpacked(packed(prepared)) == prepared


def test_thousands_take_about_eight_characters_each() -> None:
    prepared = [Prepared(partition, 0, 2_000_000 + partition * 37 % 4000, 200, True) for partition in range(4000)]
    assert len(packed(prepared)) < 8.5 * 4000


@pytest.mark.parametrize("text", ["no base64!", "AAA=", "AAA", "gA=="])
def test_a_text_that_was_not_packed_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        unpacked(text)


def test_names_of_slots() -> None:
    one = Prepared(12, 3, 1000, 0, False)
    assert one.name == "12.3"
    assert slot_named(one.name) == (12, 3)
    assert [slot_named(name) for name in ("12", "all", "5-0.0", "0.0.0", "-1.0", "a.0", "")] == [None] * 7


NAMES = st.text("ab-_.01", min_size=1, max_size=6)
ENDS = st.sampled_from(["0", "1", "0.0", "1.0", "all", "all.1"])


@given(st.tuples(NAMES, NAMES, ENDS), st.tuples(NAMES, NAMES, ENDS))
@example(("a", "b-c", "0"), ("a-b", "c", "0"))
@example(("a", "b-1_0", "0"), ("a-b", "0", "0"))
@example(("a-", "b", "all"), ("a", "-b", "all"))
def test_different_writes_have_no_name_in_common(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    def name(prefix: str, write: str, end: str) -> str:
        return names_of(prefix, write) + end

    assert (name(*one) == name(*other)) == (one == other)


def test_a_prefix_without_dashes_is_followed_by_the_write() -> None:
    assert names_of("aioproducer", "orders") == "aioproducer-orders-"
    assert names_of("team-a", "orders").startswith("team-a"), "so that an ACL for the prefix is one for its names"


def test_of_outcomes_those_that_hold_something() -> None:
    one = Prepared(1, 0, 1000, 0, True)
    assert prepared_of([Outcome(0, 5, "00", None), Outcome.held(5, "00", one)]) == [one]
