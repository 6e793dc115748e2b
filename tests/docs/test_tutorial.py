"""The test at the end of docs/tutorial.md passes; ``test_code.py`` runs the other blocks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import aioproducer

ROOT = Path(__file__).parents[2]
(BLOCK,) = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "tutorial.md").read_text(), re.DOTALL)


def test_its_test_passes(tmp_path: Path) -> None:
    (tmp_path / "test_block.py").write_text(BLOCK)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "-o", "asyncio_mode=auto"]
    command += ["-p", "aioproducer.testing.pytest_broker", "-o", "asyncio_default_fixture_loop_scope=function"]
    path = str(Path(aioproducer.__file__).parents[1])
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
