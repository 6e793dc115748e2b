"""Constructs and imports that are forbidden in modules that mypyc compiles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compiled import compiled_files, of_setup

CHECKOUT = Path(__file__).parents[2]


def awaits(tree: ast.AST) -> Iterator[int]:
    """The lines where something is awaited, or taken from another generator."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith | ast.YieldFrom):
            yield node.lineno
        elif isinstance(node, ast.comprehension) and node.is_async:
            yield node.target.lineno


@pytest.mark.parametrize("module", compiled_files())
def test_nothing_is_awaited(module: str) -> None:
    """mypyc 2.4 hands a cancellation on by ``throw(type, value, traceback)``, which warns from Python 3.12 on.

    And it keeps the exception that is handled per thread, not per coroutine: awaiting in an except or finally clause
    would make it every other task's, too.
    """
    lines = list(awaits(ast.parse((CHECKOUT / module).read_text())))
    assert not lines, f"{module} awaits in lines {lines}: put that into an interpreted module"


@pytest.mark.parametrize("module", compiled_files())
def test_nothing_is_taken_from_a_package_that_mypy_does_not_read(module: str) -> None:
    """What came from there would have no type, and the code that uses it would be slow."""
    tree = ast.walk(ast.parse((CHECKOUT / module).read_text()))
    taken = {node.module for node in tree if isinstance(node, ast.ImportFrom)}
    assert not taken & set(of_setup("UNFOLLOWED"))


def test_an_await_is_found() -> None:
    code = """
async def f():
    await one()
    async with two():
        [x async for x in three()]
    async for y in four():
        pass
def g():
    yield from five()
    yield 6
async def h():
    return 7
"""
    assert sorted(awaits(ast.parse(code))) == [3, 4, 5, 6, 9]
