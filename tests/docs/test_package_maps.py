"""The docstring of a package lists every file in it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "aioproducer"
FOLDERS = [path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*/__init__.py")]
PACKAGES = sorted({*FOLDERS} - {".", "broker/handlers", "protocol/messages"})
"""All but those that have one file for each API, and the package itself."""


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_is_listed(package: str) -> None:
    folder = SOURCE / package
    listed = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    names = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
    names += [f"{path.parent.name}/" for path in folder.glob("*/__init__.py")]
    assert names
    assert [name for name in names if name not in listed.split() and f"{name}," not in listed.split()] == []
    said = [word for line in listed.splitlines() if (word := line.partition(" ")[0].rstrip(",")).endswith((".py", "/"))]
    assert [word for word in said if not (folder / word).exists()] == []


def test_the_package_names_every_part_as_public_or_private() -> None:
    listed = ast.get_docstring(ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))) or ""
    parts = {path.stem for path in SOURCE.glob("*.py") if not path.name.startswith("__")}
    parts |= {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert sorted(parts - set(re.findall(r"\w+", listed))) == []
