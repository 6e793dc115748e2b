"""``python -m benchmarks encode``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.environment import aioproducer_build


def test_what_is_installed_is_measured_not_the_checkout() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, "-m", "benchmarks", "encode", "--records", "100", "--rounds", "1"]
    checkout = Path(__file__).parents[2]
    ended = subprocess.run(command, cwd=checkout, env=environment, check=False, capture_output=True, text=True)
    assert ended.returncode in (0, 1), ended.stderr
    said = ended.stdout
    assert f"- aioproducer: {aioproducer_build()}\n" in said
    assert "| a table, 100 B |" in said
