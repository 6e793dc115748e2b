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


@pytest.mark.parametrize("module", compiled_files())
def test_names_imported_in_a_function_are_those_their_module_defines(module: str) -> None:
    """mypyc takes a name that its module makes while it runs for a variable of the function, which has no value."""
    missing = [
        f"{node.module}.{alias.name}"
        for node in imports_in_functions(ast.parse((CHECKOUT / module).read_text()))
        if (node.module or "").startswith("aioproducer")
        for alias in node.names
        if alias.name not in defined_names(node.module or "")
    ]
    assert not missing, f"{module} imports {missing} in a function: import what makes them, at the top"


def imports_in_functions(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    for outer in ast.walk(tree):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (node for node in ast.walk(outer) if isinstance(node, ast.ImportFrom))


def defined_names(module: str) -> set[str]:
    """The names that stand in a module, and the modules of a package."""
    path = CHECKOUT.joinpath(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    names = {inner.stem for inner in path.iterdir()} if path.is_dir() else set()
    for node in ast.parse(source.read_text()).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ImportFrom(names=aliases) | ast.Import(names=aliases):
                names.update(alias.asname or alias.name for alias in aliases)
            case ast.Assign(targets=targets):
                names.update(target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


def test_a_name_that_its_module_makes_while_it_runs_is_found() -> None:
    code = "def f():\n    from aioproducer.compat.aiokafka.errors import IllegalArgumentError, translated\n"
    [node] = imports_in_functions(ast.parse(code))
    found = [alias.name for alias in node.names if alias.name in defined_names(node.module or "")]
    assert found == ["translated"]


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
