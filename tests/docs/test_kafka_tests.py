"""kafka-tests.md and aiokafka-tests.md name tests that exist, and map every test of the others once."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from .test_coverage import QUOTED, ROOT, cells, missing

TEXTS = [(ROOT / "docs" / "internals" / name).read_text() for name in ("kafka-tests.md", "aiokafka-tests.md")]
HEADS = (["Kafka's test", "here"], ["aiokafka's test", "here"])
SECTIONS = {
    name: section
    for text in TEXTS
    for name, section in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
}


def rows(section: str) -> list[list[str]]:
    lines = [line for line in section.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [row for row in map(cells, lines) if row not in HEADS]


ROWS = [(name, *row) for name, section in SECTIONS.items() for row in rows(section)]


@pytest.mark.parametrize(("theirs", "names", "here"), ROWS, ids=[f"{row[0]}-{row[1][:40]}" for row in ROWS])
def test_a_row_is_true_to_the_tree(theirs: str, names: str, here: str) -> None:
    ours = QUOTED.findall(here) if "::" in here else []
    assert [problem for test in ours if (problem := missing(test)) is not None] == []
    assert ours or re.match(r"(later|not here|not yet): ", here), "which test shows it, or why is there none?"


@pytest.mark.parametrize("theirs", SECTIONS)
def test_every_test_is_mapped_once(theirs: str) -> None:
    counted = Counter(name for of, names, _ in ROWS if of == theirs for name in names.split(", "))
    assert [name for name, count in counted.items() if count > 1] == []
    assert all(re.fullmatch(r"[a-z]\w+", name) for name in counted)
