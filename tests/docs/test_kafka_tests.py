"""docs/kafka-tests.md names tests that exist, and maps every test of Kafka once."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from .test_coverage import QUOTED, ROOT, cells, missing

TEXT = (ROOT / "docs" / "kafka-tests.md").read_text()
HEAD = ["Kafka's test", "here"]
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))


def rows(section: str) -> list[list[str]]:
    lines = [line for line in section.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [row for row in map(cells, lines) if row != HEAD]


ROWS = [(name, *row) for name, section in SECTIONS.items() for row in rows(section)]


@pytest.mark.parametrize(("kafkas", "names", "here"), ROWS, ids=[f"{row[0]}-{row[1][:40]}" for row in ROWS])
def test_a_row_is_true_to_the_tree(kafkas: str, names: str, here: str) -> None:
    ours = QUOTED.findall(here) if "::" in here else []
    assert [problem for test in ours if (problem := missing(test)) is not None] == []
    assert ours or re.match(r"(later|not here|not yet): ", here), "which test shows it, or why is there none?"


@pytest.mark.parametrize("kafkas", SECTIONS)
def test_every_test_is_mapped_once(kafkas: str) -> None:
    counted = Counter(name for of, names, _ in ROWS if of == kafkas for name in names.split(", "))
    assert [name for name, count in counted.items() if count > 1] == []
    assert all(re.fullmatch(r"[a-z]\w+", name) for name in counted)
