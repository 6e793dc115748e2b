"""Exactly once, as Spark itself makes trouble: speculative copies of tasks, and executors that are lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.spark.foreign import values

pytestmark = pytest.mark.conformance

ROWS = 600
"""Of each task in two_hosts.py."""


def test_each_row_is_read_once(spark: object, tmp_path: Path) -> None:
    """``spark`` skips this where there is no Spark."""
    with ThreadedCluster(topics={"t": 2}) as cluster:
        program = str(Path(__file__).with_name("two_hosts.py"))
        arguments = [sys.executable, program, cluster.bootstrap_servers, "t", str(tmp_path)]
        ended = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr[ended.stderr.rfind("Traceback") :][:4000]
        for task in ("slow-0", "lost-0", "lost-1"):
            attempts = sorted(path.name for path in tmp_path.glob(f"{task}-*"))
            assert f"{task}-in-trouble" in attempts
            assert len(attempts) > 2, f"a copy of the task, or another attempt, was run beside {attempts}"
        read = [value.rstrip(".").strip() for value in values(cluster.bootstrap_servers, "t", 2)]
        written = len(cluster.records("t"))
    expected = [f"{job} {row}" for job, tasks in (("slow", 3), ("lost", 2)) for row in range(tasks * ROWS)]
    assert sorted(read) == sorted(expected)
    assert written > len(expected), "rows of failed attempts, which no reader sees"
