"""The list of compiled modules, and whether the package under test is compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from aioproducer.producer.accumulator import record_accumulator

COMPILED = record_accumulator.__file__.endswith(tuple(EXTENSION_SUFFIXES))

interpreted_only = pytest.mark.skipif(COMPILED, reason="puts code of its own where only the interpreter finds it")


def compiled_files() -> list[str]:
    """The paths of the modules that are compiled."""
    return list(of_setup("COMPILED_MODULES"))


def of_setup(name: str) -> Iterable[str]:
    """What setup.py assigns to ``name``, read without running it."""
    for statement in ast.parse(Path(__file__).parents[2].joinpath("setup.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            strings: Iterable[str] = ast.literal_eval(statement.value)
            return strings
    raise AssertionError(f"setup.py has no {name}")
