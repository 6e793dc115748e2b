"""What must not be written in a module that mypyc compiles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compiled import compiled_files

CHECKOUT = Path(__file__).parents[1]


def awaits_while_handling(tree: ast.AST) -> Iterator[int]:
    """The lines with an ``await`` in an except or finally clause."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            for statement in (*node.handlers, *node.finalbody):
                yield from (inner.lineno for inner in ast.walk(statement) if isinstance(inner, ast.Await))


@pytest.mark.parametrize("module", compiled_files())
def test_nothing_is_awaited_while_an_exception_is_handled(module: str) -> None:
    """mypyc 2.4 keeps what is handled per thread, not per coroutine: it would be every other task's, too."""
    lines = list(awaits_while_handling(ast.parse((CHECKOUT / module).read_text())))
    assert not lines, f"{module} awaits in an except or finally clause in lines {lines}"


def test_an_await_in_a_clause_is_found() -> None:
    code = """
async def f():
    try:
        await one()
    except ValueError:
        pass
    finally:
        await two()
"""
    assert list(awaits_while_handling(ast.parse(code))) == [8]
