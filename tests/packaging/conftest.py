"""An sdist of this checkout, and the wheel that is built from it: without isolation, so that nothing is downloaded."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.packaging.building import Built, Hook, build

ROOT = Path(__file__).parents[2]
NOT_OF_THE_PROJECT = (".git", ".tox", ".cache", ".venv", ".*_cache", ".hypothesis", "build", "dist", "*.egg-info")

Required = Callable[[bool, str], None]


@pytest.fixture(scope="session")
def required() -> Required:
    """Skips the test, or fails it in CI, unless what it needs is there."""

    def check(there: bool, missing: str) -> None:
        if there:
            return
        if os.environ.get("CI") == "true":
            pytest.fail(f"{missing}, and in CI that is no reason to skip")
        pytest.skip(f"the package's build is NOT tested: {missing}")

    return check


@pytest.fixture(scope="session")
def sdist(required: Required, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file."""
    try:
        recent = int(version("setuptools").partition(".")[0]) >= 77
    except PackageNotFoundError:
        recent = False
    required(recent, "setuptools 77 or newer is not installed (dependency group build)")
    place = tmp_path_factory.mktemp("sdist")
    shutil.copytree(ROOT, place / "source", ignore=shutil.ignore_patterns("__pycache__", *NOT_OF_THE_PROJECT))
    return build(Hook.SDIST, place / "source", place).file


@pytest.fixture(scope="session")
def source(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the sdist unpacks to."""
    place = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    (folder,) = place.iterdir()
    return folder


@pytest.fixture(scope="session")
def pure_wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """From the sdist, as pip makes it where there is no wheel."""
    return build(Hook.WHEEL, source, tmp_path_factory.mktemp("wheel"), AIOPRODUCER_COMPILE="0")
