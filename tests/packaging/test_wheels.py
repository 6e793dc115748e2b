"""A wheel says what is in it: the same metadata however it was built, and a tag that is true."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.packaging.building import Built, Hook, build, run_hook, site_with_setuptools_alone
from tests.support.compiled import compiled_files

ROOT = Path(__file__).parents[2]
LARGEST = 1_700_000
"""Bytes that a pure wheel may have."""

pytestmark = pytest.mark.timeout(300)  # builds


def assert_pure(wheel: Built) -> None:
    assert wheel.file.name.endswith("-py3-none-any.whl")
    assert wheel.message("WHEEL").get_all("Tag") == ["py3-none-any"]
    assert wheel.message("WHEEL")["Root-Is-Purelib"] == "true"
    assert [name for name in wheel.names() if name.endswith((".so", ".pyd", ".c")) or "__mypyc" in name] == []
    assert {*compiled_files(), "aioproducer/py.typed", "pyspark_aioproducer.py"} <= {*wheel.names()}


def test_a_build_that_compiles_nothing_is_for_every_python_and_platform(pure_wheel: Built) -> None:
    assert_pure(pure_wheel)
    assert "will be pure Python" not in pure_wheel.errors, "it was asked for"


def test_the_metadata_is_that_of_pyproject(pure_wheel: Built) -> None:
    """So it depends on no compiler: tests/compiled/test_build.py compares that of the package under test."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dynamic"] == ["readme"]
    required = pure_wheel.message("METADATA").get_all("Requires-Dist") or []
    assert len([each for each in required if "extra ==" not in each]) == len(project["dependencies"])


def test_the_description_has_no_link_into_a_repository_that_is_not_there(pure_wheel: Built) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    payload = pure_wheel.message("METADATA").get_payload(decode=True)
    assert isinstance(payload, bytes)
    text = payload.decode()
    assert text.lstrip().startswith("# aioproducer\n")
    targets = re.findall(r"\]\(([^)]*)\)", text)
    at_the_tag = {kind: f"{project['urls']['Repository']}/{kind}/v{project['version']}/" for kind in ("blob", "raw")}
    assert f"{at_the_tag['blob']}docs/sending.md" in targets
    assert f"{at_the_tag['raw']}docs/flow.svg" in targets
    assert f"{project['urls']['Repository']}/actions/workflows/tests.yml" in targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    for target in targets:
        for start in at_the_tag.values():
            if target.startswith(start):
                assert (ROOT / target.removeprefix(start).partition("#")[0]).exists(), target


def test_a_compiler_that_fails_leaves_a_pure_wheel(
    source: Path, pure_wheel: Built, tmp_path: Path, required: Callable[[bool, str], None]
) -> None:
    required(find_spec("mypyc") is not None, "mypy is not installed (dependency group build)")
    failing = shutil.which("false")
    required(failing is not None, "there is no program false to take for a compiler")
    wheel = build(Hook.WHEEL, source, tmp_path, CC=str(failing))
    assert_pure(wheel)
    assert "warning: aioproducer will be pure Python" in wheel.errors
    assert wheel.message("METADATA").as_bytes() == pure_wheel.message("METADATA").as_bytes()


def test_without_isolation_and_without_mypy_the_wheel_is_pure(source: Path, pure_wheel: Built, tmp_path: Path) -> None:
    site = site_with_setuptools_alone(tmp_path / "site")
    wheel = build(Hook.WHEEL, source, tmp_path, only=site)
    assert_pure(wheel)
    assert wheel.message("METADATA").as_bytes() == pure_wheel.message("METADATA").as_bytes()


def test_without_a_compiler_the_wheel_is_pure_and_says_so(source: Path, tmp_path: Path) -> None:
    wheel = build(Hook.WHEEL, source, tmp_path, CC="no-such-compiler")
    assert_pure(wheel)
    assert "several times slower than compiled: there is no C compiler 'no-such-compiler' (CC)" in wheel.errors


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="mypy is there for this Python, free-threaded or not")
def test_a_free_threaded_python_without_mypy_does_not_ask_for_it(source: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sysconfig; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1")
    done = run_hook(Hook.WHEEL, source, tmp_path, only=None, AIOPRODUCER_COMPILE="1", PYTHONPATH=str(site))
    assert done.returncode != 0
    assert "AIOPRODUCER_COMPILE=1, but mypy's parser cannot be built for a free-threaded Python" in done.stderr


@pytest.mark.parametrize("version", [None, "1.19.1", "2.40.0"])
def test_a_mypy_that_is_missing_or_another_is_an_error_if_it_must_be_compiled(
    source: Path, tmp_path: Path, required: Callable[[bool, str], None], version: str | None
) -> None:
    required(shutil.which("cc") is not None, "there is no C compiler cc")
    site = site_with_setuptools_alone(tmp_path / "site")
    if version is not None:
        information = site / f"mypy-{version}.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: mypy\nVersion: {version}\n")
    done = run_hook(Hook.WHEEL, source, tmp_path, only=site, AIOPRODUCER_COMPILE="1")
    assert done.returncode != 0
    found = "mypy is not installed" if version is None else f"mypy {version} is installed"
    assert f"{found}, and compiling needs mypy>=" in done.stderr


def test_a_wish_that_does_not_exist_is_an_error(source: Path, tmp_path: Path) -> None:
    done = run_hook(Hook.WHEEL, source, tmp_path, only=None, AIOPRODUCER_COMPILE="yes")
    assert done.returncode != 0
    assert "AIOPRODUCER_COMPILE=yes: expected 1 (compile or fail), 0 (pure Python) or nothing (try)" in done.stderr
    done = run_hook(Hook.WHEEL, source, tmp_path, only=None, MYPYC_OPT_LEVEL="fast")
    assert done.returncode != 0
    assert "MYPYC_OPT_LEVEL=fast: expected 0, 1, 2 or 3" in done.stderr


def test_an_older_python_is_refused_in_one_line() -> None:
    """pip runs setup.py before it knows which Python the project requires."""
    ast.parse((ROOT / "setup.py").read_text(), feature_version=(3, 10))
    program = (
        "import runpy, sys; sys.version_info = (3, 10, 13); sys.modules['tomllib'] = None; runpy.run_path('setup.py')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("aioproducer needs Python 3.11 or newer; this is Python ")


def test_a_wheel_has_the_package_alone(pure_wheel: Built) -> None:
    tops = {name.partition("/")[0] for name in pure_wheel.names() if ".dist-info/" not in name}
    assert tops == {"aioproducer", "pyspark_aioproducer.py"}
    with zipfile.ZipFile(pure_wheel.file) as archive:
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())
    assert pure_wheel.file.stat().st_size < LARGEST
