"""The sdist is the project: everything that its tests need is in it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(300)  # builds


def test_every_file_of_the_repository_is_in_it(source: Path, required: Callable[[bool, str], None]) -> None:
    if (ROOT / "PKG-INFO").exists():
        pytest.skip("these are the sdist's own tests")
    required((ROOT / ".git").exists(), "this is no git checkout")
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True)
    tracked = [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
    assert [name for name in tracked if not (source / name).is_file()] == []


def test_nothing_that_was_built_is_in_it(source: Path) -> None:
    names = [path.name for path in source.rglob("*")]
    assert [name for name in names if name.endswith((".pyc", ".so", ".whl")) or name == "__pycache__"] == []
