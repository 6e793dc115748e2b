"""``python -m benchmarks encode``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.harness.environment import aioproducer_build


def test_the_installed_package_is_measured_and_not_the_checkout() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, "-m", "benchmarks", "encode", "--records", "100", "--rounds", "1"]
    checkout = Path(__file__).parents[3]
    ended = subprocess.run(command, cwd=checkout, env=environment, check=False, capture_output=True, text=True)
    assert ended.returncode in (0, 1), ended.stderr
    said = ended.stdout
    assert f"- aioproducer: {aioproducer_build()}\n" in said
    assert "| a table, 100 B |" in said
