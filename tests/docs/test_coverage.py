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
def names(path: Path) -> frozenset[str]:
    """The functions and classes of a file, wherever they are in it."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return frozenset(node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds))


def missing(test: str) -> str | None:
    file, *parts = test.split("::")
    path = ROOT / "tests" / file
    if not parts:
        return f"{test} is no file::name"
    if not path.is_file():
        return f"there is no tests/{file}"
    return next((f"tests/{file} has no {part}" for part in parts if part not in names(path)), None)


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
