"""The package under test is the one that was to be tested: installed, and compiled or interpreted as tox ordered.

Outside tox nothing is ordered, and the checkout may be tested itself.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import Path

import pytest

import aioproducer
from tests.support.compiled import compiled_files

ROOT = Path(__file__).parents[2]
EXPECT = os.environ.get("AIOPRODUCER_EXPECT")

ordered = pytest.mark.skipif(EXPECT is None, reason="AIOPRODUCER_EXPECT is not set: any build will do")


def compiled_modules() -> list[str]:
    return [file.removesuffix(".py").replace("/", ".") for file in compiled_files()]


def all_modules() -> list[str]:
    found = pkgutil.walk_packages(aioproducer.__path__, prefix="aioproducer.")
    return [aioproducer.__name__, *(module.name for module in found)]


def is_compiled(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} is not there"
    assert spec.origin is not None, f"{name} has no file"
    compiled = spec.origin.endswith(tuple(EXTENSION_SUFFIXES))
    assert compiled or spec.origin.endswith(tuple(SOURCE_SUFFIXES))
    return compiled


@ordered
def test_the_installed_package_is_tested() -> None:
    assert not Path(aioproducer.__file__).is_relative_to(ROOT / "aioproducer")


@ordered
def test_exactly_the_listed_modules_are_compiled() -> None:
    assert EXPECT in ("compiled", "pure")
    listed = set(compiled_modules()) if EXPECT == "compiled" else set()
    assert {name for name in all_modules() if is_compiled(name)} == listed


@pytest.mark.parametrize("name", compiled_modules())
def test_a_listed_module_can_be_imported(name: str) -> None:
    assert importlib.import_module(name).__name__ == name


@ordered
def test_the_metadata_is_the_same_compiled_or_pure() -> None:
    """So it does not depend on which wheel a lock was made from."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = importlib.metadata.requires("aioproducer") or []
    required = {normalized(one) for one in requirements if "extra ==" not in one}
    assert required == {normalized(one) for one in project["dependencies"]}
    assert "librt" in required


@ordered
def test_the_tag_of_the_wheel_says_whether_it_is_compiled() -> None:
    tags = re.findall(r"^Tag: (.+)$", importlib.metadata.distribution("aioproducer").read_text("WHEEL") or "", re.M)
    assert (tags == ["py3-none-any"]) == (EXPECT == "pure")


@ordered
def test_without_extras_only_declared_dependencies_are_imported() -> None:
    """Beside what exists for an extra or for pytest, every module can be imported where neither is installed.

    ``compat`` takes another library's errors if it is there (tests/compat tries it without).
    """
    rooms = ("__main__", "cli", "compat", "integrations", "spark", "sync", "testing.pytest_", "testing.mock.sync_")
    for_extras = tuple(f"aioproducer.{room}" for room in rooms)
    names = [name for name in all_modules() if not name.startswith(for_extras)]
    program = (
        "import importlib, json, sys\n"
        "before = set(sys.modules)\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
    )
    answer = subprocess.run([sys.executable, "-c", program, *names], check=True, capture_output=True, text=True)
    owners = importlib.metadata.packages_distributions()
    imported = {normalized(owner) for module in json.loads(answer.stdout) for owner in owners.get(module, [])}

    requirements = importlib.metadata.requires("aioproducer") or []
    declared = {normalized(requirement) for requirement in requirements if "extra ==" not in requirement}
    assert imported - declared == {"aioproducer"}


def normalized(requirement: str) -> str:
    """The name at the start of a requirement, spelt in the one way that all its spellings share."""
    name = re.match(r"[\w.-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


@ordered
def test_the_package_is_typed() -> None:
    assert Path(aioproducer.__file__).with_name("py.typed").is_file()


def test_help_has_docstrings() -> None:
    assert (inspect.getdoc(aioproducer.KafkaProducer.send) or "").startswith("Appends a record")
    assert (inspect.getdoc(aioproducer.Delivery) or "").startswith("One record's delivery")
    assert (inspect.getdoc(aioproducer.Delivery.done) or "").startswith("Whether the record")
    # Compiled, the class shows mocks a signature without self.
    shown = [name for name in inspect.signature(aioproducer.KafkaProducer.send).parameters if name != "self"]
    assert shown[:2] == ["topic", "value"]


def test_no_extension_module_lies_beside_its_source() -> None:
    assert [file for suffix in EXTENSION_SUFFIXES for file in (ROOT / "aioproducer").rglob(f"*{suffix}")] == []
