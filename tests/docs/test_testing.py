"""The code in docs/testing.md does what it says: its tests pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import aioproducer
from aioproducer.testing.faults.request_rule import RequestRule

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "testing.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_its_tests_pass(tmp_path: Path) -> None:
    for number, block in enumerate(BLOCKS):
        (tmp_path / f"test_block_{number}.py").write_text(block)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "aioproducer.testing.pytest_broker",
        "-p",
        "no:cacheprovider",
        "-q",
    ]
    command += ["--strict-markers", "-W", "error", "-o", "asyncio_mode=auto"]
    command += ["-W", "ignore:Using `httpx` with"]  # Starlette's test client wishes for another
    command += ["-o", "asyncio_default_fixture_loop_scope=function"]
    path = str(Path(aioproducer.__file__).parents[1])
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{TEXT.count('def test_')} passed" in done.stdout


def test_the_document_lists_every_fault() -> None:
    public = {name for name in vars(RequestRule) if not name.startswith("_")}
    assert {name for name in public if f"`.{name}(" not in TEXT} == set()
