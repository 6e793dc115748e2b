"""Patterns match what Python's do, and take no longer for hostile ones."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.configs.linear_pattern import MAX_LENGTH, LinearPattern
from aioproducer.broker.requests.long_work import finish

ATOMS = st.sampled_from(
    [*"ab-.", "(?:^)", "(?:$)", r"\.", r"\d", r"\w", r"\S", "[ab]", "[^a]", "[a-c1]", "[]a]", r"[\d-]", "(?:ab)", "()"]
)
REPEATED = st.tuples(ATOMS, st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"])).map("".join)
SEQUENCES = st.lists(REPEATED, max_size=4).map("".join)
PATTERNS = st.recursive(
    SEQUENCES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("|".join),
        st.tuples(inner, st.sampled_from(["", "*", "+", "?", "{2}"])).map(lambda pair: f"({pair[0]}){pair[1]}"),
    ),
    max_leaves=4,
)


def matches(pattern: str, text: str) -> bool:
    return finish(LinearPattern(pattern).fullmatch(text))


@given(PATTERNS, st.text("abc1-.\n", max_size=6))
def test_it_matches_what_python_does(pattern: str, text: str) -> None:
    # Python's $ matches before a last line feed, too; RE2's does not.
    theirs = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    assert matches(pattern, text) == (theirs.fullmatch(text) is not None)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("", ""),
        ("orders-.*", "orders-eu-1"),
        (r"\Aa\x41\x{42}\z", "aAB"),
        ("(?P<name>a)(?<other>b)", "ab"),
        ("a{,2}", "a{,2}"),
        ("[a-]", "-"),
        (r"\t[\t]", "\t\t"),
        ("é🔑", "é🔑"),
    ],
)
def test_a_pattern_matches_the_whole_text(pattern: str, text: str) -> None:
    assert matches(pattern, text)
    assert not matches(pattern, text + "\n")


@pytest.mark.parametrize("pattern", ["(a|a)*b", "(a*)*b", "(a|aa)+b", "a*" * 50 + "b", "a?" * 200 + "a" * 200 + "b"])
def test_hostile_patterns_end(pattern: str) -> None:
    assert not matches(pattern, "a" * 3000)
    assert sum(1 for _ in LinearPattern(pattern).fullmatch("a" * 3000)) > 3, "others have their turns"


@pytest.mark.parametrize("pattern", ["(", ")", "(a", "a)", "[", "[a", "[z-a]", "*", "a|*", "\\", "[[:alpha:]]"])
def test_invalid_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        LinearPattern(pattern)


@pytest.mark.parametrize("pattern", [r"\b", r"\p", r"\1", r"\xg", r"\x{", "(?i)a", "(?=a)", "(?<=a)", "(?!a)", "(?<"])
def test_unsupported_values_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        LinearPattern(pattern)


@pytest.mark.parametrize("pattern", ["a{2,1}", "a{1001}", "(a{100}){100}", "(" * 51 + ")" * 51, "a" * (MAX_LENGTH + 1)])
def test_large_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        LinearPattern(pattern)
