"""scripts/demo while it compiles, with a Python in place of its environment's that only says that it builds."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BUILDER = """
import os, subprocess, sys, tempfile
from pathlib import Path

root, *arguments = sys.argv[1:]
if arguments[0] == "-":
    os.execv(sys.executable, [sys.executable, *arguments])
elif arguments[:3] == ["-m", "pip", "wheel"]:
    for line in Path(os.environ["DIST_EXTRA_CONFIG"]).read_text().splitlines():
        if line.startswith("build_base = "):
            Path(line.removeprefix("build_base = ")).mkdir()
    tempfile.mkdtemp()
    out = os.open(f"{root}/building", os.O_WRONLY)
    os.write(out, b"building\\n")
    subprocess.run([sys.executable, "-c", "import time; time.sleep(50)"], pass_fds=[out])
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and bash")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What scripts/demo reads, an environment that is ready, and a pipe that is open as long as anything builds."""
    venv = tmp_path / ".cache" / "venv-demo"
    for folder in (tmp_path / "scripts", tmp_path / "aioproducer", venv / "bin"):
        folder.mkdir(parents=True)
    for script in ("demo", "python.sh"):
        shutil.copy(ROOT / "scripts" / script, tmp_path / "scripts" / script)
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "a"\ndependencies = []\noptional-dependencies = {cli = [], compression = [], uvloop = []}\n'
    )
    (tmp_path / "setup.py").touch()
    (tmp_path / "builder.py").write_text(BUILDER)
    (venv / "made-with").write_text("python\n")
    python = venv / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path}/builder.py" "{tmp_path}" "$@"\n')
    python.chmod(0o755)
    os.mkfifo(tmp_path / "building")
    return tmp_path


def handle(*, interruptible: bool) -> None:
    """Sets what the script inherits: a shell cannot trap what is ignored, as SIGHUP is below nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL if interruptible else signal.SIG_IGN)


def start(project: Path, *, interruptible: bool = True) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON"}
    return subprocess.Popen(
        ["bash", str(project / "scripts" / "demo")],
        env={**environment, "TMPDIR": str(project)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: handle(interruptible=interruptible),
    )


def left(project: Path) -> list[str]:
    """What is there beside what was there before."""
    venv = project / ".cache" / "venv-demo"
    known = {"aioproducer", "building", "builder.py", "pyproject.toml", "scripts", "setup.py", ".cache"}
    found = [path for path in project.iterdir() if path.name not in known]
    return [path.name for path in [*found, *venv.glob("wheel.*")]]


@pytest.mark.parametrize(
    ("sent", "interruptible"),
    [
        (signal.SIGTERM, True),
        (signal.SIGTERM, False),  # a shell's job in the background
        (signal.SIGHUP, True),
        (signal.SIGINT, True),
    ],
)
def test_a_signal_ends_everything_and_leaves_nothing(project: Path, sent: signal.Signals, interruptible: bool) -> None:
    with start(project, interruptible=interruptible) as demo, (project / "building").open() as building:
        assert building.readline() == "building\n"
        assert left(project) == [f"wheel.{demo.pid}"], "all that is made is in there"
        os.killpg(demo.pid, sent)  # as a terminal does, to the script's group: the build has another
        assert building.read() == "", "no process is left that has the pipe"
        demo.communicate()
        assert demo.returncode in (-sent, 128 + sent)
    assert left(project) == []


def test_what_a_script_left_that_was_killed_outright_is_removed_by_the_next(project: Path) -> None:
    venv = project / ".cache" / "venv-demo"
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    (venv / f"wheel.{gone.pid}").mkdir()
    another = venv / f"wheel.{os.getpid()}"
    another.mkdir()
    with start(project) as demo, (project / "building").open() as building:
        assert building.readline() == "building\n"
        assert sorted(left(project)) == sorted([f"wheel.{demo.pid}", another.name]), (
            "that of a script that runs is kept"
        )
        demo.terminate()
        assert building.read() == ""
        demo.communicate()
