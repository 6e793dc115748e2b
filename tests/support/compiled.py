"""The list of compiled modules, and whether the package under test is compiled."""

from __future__ import annotations

import ast
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from aioproducer.producer.accumulator import record_accumulator

COMPILED = record_accumulator.__file__.endswith(tuple(EXTENSION_SUFFIXES))

interpreted_only = pytest.mark.skipif(COMPILED, reason="puts code of its own where only the interpreter finds it")


def compiled_files() -> list[str]:
    """The paths in setup.py's COMPILED_MODULES, read without running it."""
    for statement in ast.parse(Path(__file__).parents[2].joinpath("setup.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "COMPILED_MODULES":
            files: list[str] = ast.literal_eval(statement.value)
            return files
    raise AssertionError("setup.py has no COMPILED_MODULES")
