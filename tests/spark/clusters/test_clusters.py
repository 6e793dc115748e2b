"""The recipes of docs/spark.md for clusters: jobs submitted to a standalone cluster without the package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import aioproducer
from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.spark.quick_start import QUICK_START

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(900)]

ROOT = Path(aioproducer.__file__).parents[1]
BROUGHT = ("fastcrc", "librt", "mypy")
"""How the names of the packages begin that aioproducer requires."""


@pytest.fixture(scope="module")
def foreign_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with links to all installed packages except those that a job brings along."""
    pytest.importorskip("pyspark")
    directory = tmp_path_factory.mktemp("packages")
    for found in Path(sysconfig.get_path("purelib")).iterdir():
        if "aioproducer" not in found.name and not found.name.startswith((*BROUGHT, "__editable__")):
            (directory / found.name).symlink_to(found)
    return directory


@pytest.fixture(scope="module")
def environment(foreign_packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment of these packages: what each machine of the cluster has."""
    return made_environment(tmp_path_factory.mktemp("machine") / "env", foreign_packages)


def made_environment(place: Path, packages: Path) -> Path:
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/python*/site-packages")
    (site / "packages.pth").write_text(f"{packages}\n")
    return place


@pytest.fixture(scope="module")
def master(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from tests.spark.campaign.standalone import Standalone

    with Standalone(tmp_path_factory.mktemp("standalone"), clean(environment)) as cluster:
        yield cluster.master


def clean(environment: Path) -> dict[str, str]:
    """This process's environment without any path to this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK"))}
    return {**kept, "PATH": f"{environment}/bin:{os.environ['PATH']}", "PYTHONPATH": ""}


def copy_of_the_package(place: Path) -> None:
    """With what it requires, compiled if it is."""
    place.mkdir(exist_ok=True)
    ours = [ROOT / "aioproducer", ROOT / "pyspark_aioproducer.py", *ROOT.glob("aioproducer__mypyc.*")]
    packages = Path(sysconfig.get_path("purelib")).iterdir()
    for found in [*ours, *(package for package in packages if package.name.startswith(BROUGHT))]:
        if found.is_dir():
            shutil.copytree(found, place / found.name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(found, place)


def submit(master: str, servers: str, directory: Path, environment: dict[str, str], *options: str) -> Any:
    import pyspark

    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", master]
    command += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    quick = os.environ.get("SPARK_SUBMIT_OPTS", QUICK_START["spark.driver.extraJavaOptions"])
    for name, value in {**QUICK_START, "spark.executor.extraJavaOptions": quick}.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--driver-memory", "512m", "--executor-memory", "512m"]
    command += [*options, str(Path(__file__).with_name("submitted.py")), servers, "t"]
    ended = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{ended.stderr[-3000:]}\n{ended.stdout[-3000:]}"
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("JSON ")]
    return json.loads(line.removeprefix("JSON "))


@pytest.mark.long
def test_an_environment_in_an_archive(master: str, foreign_packages: Path, environment: Path, tmp_path: Path) -> None:
    """It is also unpacked beside the driver, so that one relative path is right for all."""
    packed = made_environment(tmp_path / "env", foreign_packages)
    (site,) = packed.glob("lib/python*/site-packages")
    copy_of_the_package(site)
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as archive:
        archive.add(packed, ".")
    variables = {**clean(environment), "PYSPARK_PYTHON": "env/bin/python", "PYSPARK_DRIVER_PYTHON": "env/bin/python"}
    with ThreadedCluster(topics={"t": 2}) as cluster:
        report = submit(master, cluster.bootstrap_servers, tmp_path, variables, "--archives", "env.tar.gz#env")
    assert report["right"]
    assert report["driver"] == str(packed)
    assert report["tasks"], "executors have run some"
    for task in report["tasks"]:
        assert task["prefix"] != str(packed), "each executor has unpacked its own"
        assert task["package"].startswith(task["prefix"])


def test_the_package_in_an_archive(master: str, environment: Path, tmp_path: Path) -> None:
    """It is also beside the driver, so that one relative path is right for all."""
    copy_of_the_package(tmp_path / "packages")
    shutil.make_archive(str(tmp_path / "packages"), "zip", tmp_path / "packages")
    python = str(environment / "bin" / "python")
    variables = {**clean(environment), "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    options = ["--archives", "packages.zip#packages", "--conf", "spark.executorEnv.PYTHONPATH=packages"]
    with ThreadedCluster(topics={"t": 2}) as cluster:
        report = submit(master, cluster.bootstrap_servers, tmp_path, {**variables, "PYTHONPATH": "packages"}, *options)
    assert report["right"]
    assert report["tasks"], "executors have run some"
    for task in report["tasks"]:
        assert task["prefix"] == str(environment)
        assert task["package"].endswith("/packages/aioproducer/__init__.py")
        assert not task["package"].startswith(str(tmp_path)), "each executor has unpacked its own"
