"""Spark Connect: the driver is a server, and this is its client."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aioproducer.testing.threaded_cluster import ThreadedCluster

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(900)]


@pytest.mark.long
def test_jobs_dataframes_and_audits(spark: object, tmp_path: Path) -> None:
    """``spark`` skips this where there is no Spark."""
    if importlib.util.find_spec("grpc") is None:
        why = "grpcio is not installed (the dependency group spark)"
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI has to run Spark Connect: {why}", pytrace=False)
        pytest.skip(why)
    with ThreadedCluster(topics={"t": 1}) as cluster:
        program = str(Path(__file__).with_name("connect_client.py"))
        arguments = [sys.executable, program, cluster.bootstrap_servers, "t", str(tmp_path)]
        ended = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
