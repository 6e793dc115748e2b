"""The docstring of a package lists every file in it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "aioproducer"
FOLDERS = [path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*/__init__.py")]
PACKAGES = sorted({*FOLDERS} - {".", "broker/handlers", "protocol/messages"})
"""All but those that have one file for each API, and the package itself, whose map is CONTRIBUTING.md."""


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_is_listed(package: str) -> None:
    folder = SOURCE / package
    listed = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    names = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
    names += [f"{path.parent.name}/" for path in folder.glob("*/__init__.py")]
    assert names
    assert [name for name in names if name not in listed.split() and f"{name}," not in listed.split()] == []
