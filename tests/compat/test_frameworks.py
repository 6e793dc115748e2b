"""Frameworks made for aiokafka run on the class that takes its place, unchanged, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from aioproducer.records.record import Record
from aioproducer.testing.threaded_cluster import ThreadedCluster

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(120)]


def records_after(framework: str, program: str, topic: str) -> list[Record]:
    """The records of the topic after the program has run, on an embedded broker."""
    if find_spec(framework) is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI has to run {framework}", pytrace=False)
        pytest.skip(f"{framework} is not installed")
    with ThreadedCluster(topics=["orders", "bills"]) as cluster:
        command = [sys.executable, str(Path(__file__).with_name(program)), cluster.bootstrap_servers]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return cluster.records(topic)


def test_faststream_publishes_one_by_one_in_batches_and_what_handlers_return() -> None:
    bills = records_after("faststream", "faststream_service.py", "bills")
    assert sorted(record.value or b"" for record in bills) == [b"bill of one", b"bill of three", b"bill of two"]


def test_taskiq_sends_its_tasks() -> None:
    messages = [
        json.loads(record.value or b"") for record in records_after("taskiq_aio_kafka", "taskiq_service.py", "tasks")
    ]
    assert [message["task_name"] for message in messages] == ["add"] * 3
    assert [message["args"] for message in messages] == [[0], [1], [2]]
