"""Every example runs, on the embedded broker, and says what it should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

SAYS = {
    "orders.py": ["delivered to orders-", "RecordTooLargeException, not_sent"],
    "bulk.py": ["50000 of 50000 delivered", "readings-0: "],
    "pipeline.py": ["50000 of 50000 delivered"],
    "many_tasks.py": ["10000 orders acknowledged"],
    "read_back.py": ["0: hello 0", "4: hello 4"],
}


def test_every_example_is_tried() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"cluster.py", "flights_spark.py", "outbox.py", *SAYS}


@pytest.mark.parametrize("name", SAYS)
def test_example(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        timeout=50,
        # Examples import their neighbour, which PYTHONSAFEPATH would forbid; the package is the one tested here.
        env={"PYTHONPATH": os.pathsep.join([str(EXAMPLES), *filter(None, sys.path)])},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    for text in SAYS[name]:
        assert text in run.stdout
