"""Building as a front end does, in a process of its own: by the hooks of PEP 517."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from email import message_from_bytes
from email.message import Message
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Hook(StrEnum):
    SDIST = "build_sdist"
    WHEEL = "build_wheel"


class Built(NamedTuple):
    file: Path
    errors: str
    """What the build wrote to standard error."""

    def message(self, name: str) -> Message:
        """The file ``name`` of a wheel's metadata."""
        with zipfile.ZipFile(self.file) as archive:
            (path,) = [path for path in archive.namelist() if path.endswith(f".dist-info/{name}")]
            return message_from_bytes(archive.read(path))

    def names(self) -> list[str]:
        with zipfile.ZipFile(self.file) as archive:
            return archive.namelist()


def run_hook(
    hook: Hook, source: Path, out: Path, *, only: Path | None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """``only``: the one folder with packages that the build can import; by default all that are installed here."""
    program = f"import sys; from setuptools import build_meta; print('BUILT', build_meta.{hook}(sys.argv[1]))"
    settings = {name: value for name, value in os.environ.items() if name not in ("AIOPRODUCER_COMPILE", "CC")}
    if only is not None:
        settings["PYTHONPATH"] = str(only)
    return subprocess.run(
        [sys.executable, *(["-S"] if only is not None else []), "-c", program, str(out)],
        cwd=source,
        env={**settings, "PYTHONWARNINGS": "ignore", **environment},
        capture_output=True,
        text=True,
    )


def build(hook: Hook, source: Path, out: Path, *, only: Path | None = None, **environment: str) -> Built:
    done = run_hook(hook, source, out, only=only, **environment)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("BUILT ")]
    return Built(out / line.removeprefix("BUILT "), done.stderr)


def site_with_setuptools_alone(folder: Path) -> Path:
    """Makes ``folder`` one in which nothing but setuptools can be imported."""
    found = importlib.util.find_spec("setuptools")
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    folder.mkdir()
    for path in [package, *package.parent.glob("setuptools-*.dist-info"), *package.parent.glob("_distutils_hack")]:
        (folder / path.name).symlink_to(path)
    return folder
