"""docs/internals/coverage.md names modules and tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "internals" / "coverage.md").read_text()
STATUSES = ("present", "partly", "not yet")
QUOTED = re.compile(r"`([^`]+)`")


class Row(NamedTuple):
    behaviour: str
    status: str
    modules: str
    tests: str


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def rows() -> list[Row]:
    lines = [line for line in TEXT.splitlines() if line.startswith("|") and not line.startswith("|---")]
    tables = [cells(line) for line in lines]
    assert all(len(row) == 4 for row in tables), "every table has four columns"
    return [Row(*row) for row in tables if row != ["behaviour", "status", "module", "test"]]


ROWS = rows()


def status(row: Row) -> str:
    return row.status.partition(":")[0]


@cache
def node_ids(path: Path) -> frozenset[str]:
    """What pytest collects from a file, without the file's name and without parameters."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            functions = (one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {node.name, *(f"{node.name}::{one.name}" for one in functions if one.name.startswith("test"))}
        elif isinstance(node, ast.Assign):  # a state machine's TestCase
            found |= {one.id for one in node.targets if isinstance(one, ast.Name) and one.id.startswith("Test")}
    return frozenset(found)


def missing(test: str) -> str | None:
    file, _, node = test.partition("::")
    path = ROOT / "tests" / file
    if not node:
        return f"{test} is no file::name"
    if not path.is_file():
        return f"there is no tests/{file}"
    return None if node in node_ids(path) else f"pytest finds no tests/{test}"


@pytest.mark.parametrize("row", ROWS, ids=[row.behaviour[:40] for row in ROWS])
def test_a_row_is_true_to_the_tree(row: Row) -> None:
    assert status(row) in STATUSES
    modules, tests = QUOTED.findall(row.modules), QUOTED.findall(row.tests)
    for module in modules:
        assert (ROOT / "aioproducer" / module).is_file(), f"there is no aioproducer/{module}"
    assert [problem for test in tests if (problem := missing(test)) is not None] == []
    if status(row) == "not yet":
        assert (modules, row.tests) == ([], "")
    else:
        assert modules, "which module has it?"
        assert tests, "which test shows it?"
    if status(row) == "partly":
        assert row.status != "partly", "what is missing?"


def test_tests_named_in_the_text_exist() -> None:
    prose = "\n".join(line for line in TEXT.splitlines() if not line.startswith("|"))
    assert [problem for test in QUOTED.findall(prose) if "::" in test and (problem := missing(test))] == []
