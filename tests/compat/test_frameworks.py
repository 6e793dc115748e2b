"""What is made for aiokafka runs on the class that takes its place, unchanged, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from aioproducer.records.record import Record
from aioproducer.testing.threaded_cluster import ThreadedCluster

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(120)]


def ran(module: str, program: str, topic: str, *arguments: str) -> tuple[str, list[Record]]:
    """What the program has printed, and the records of the topic after it has run, on an embedded broker.

    ``module`` is the one that it needs.
    """
    try:
        found = find_spec(module) is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI has to run {module}", pytrace=False)
        pytest.skip(f"{module} is not installed")
    with ThreadedCluster(topics={"orders": 2, "bills": 1}) as cluster:
        path = str(Path(__file__).with_name(program))
        command = [sys.executable, "-W", "error::RuntimeWarning", path, cluster.bootstrap_servers, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout, cluster.records(topic)


def test_faststream_publishes_one_by_one_in_batches_and_what_handlers_return() -> None:
    _, bills = ran("faststream", "faststream_service.py", "bills")
    assert sorted(record.value or b"" for record in bills) == [b"bill of one", b"bill of three", b"bill of two"]


def test_taskiq_sends_its_tasks() -> None:
    _, tasks = ran("taskiq_aio_kafka", "taskiq_service.py", "tasks")
    messages = [json.loads(record.value or b"") for record in tasks]
    assert [message["task_name"] for message in messages] == ["add"] * 3
    assert [message["args"] for message in messages] == [[0], [1], [2]]


def by_value(records: list[Record]) -> dict[bytes | None, dict[str, bytes | None]]:
    """The headers of each record, by its value."""
    return {record.value: dict(record.headers) for record in records}


@pytest.mark.parametrize("order", ["before", "after"])
def test_opentelemetrys_instrumentation_traces_every_send(order: str) -> None:
    """Instrumented before or after install()."""
    printed, records = ran("opentelemetry.instrumentation.aiokafka", "opentelemetry_service.py", "orders", order)
    spans: list[dict[str, Any]] = json.loads(printed)
    sent, received = ([span for span in spans if span["name"] == f"orders {name}"] for name in ("send", "receive"))
    assert len(sent) == len(received) == 3
    headers = by_value(records)
    for span, value in zip(sent, (b"keyed", b"there", b"anywhere"), strict=True):
        assert (headers[value]["traceparent"] or b"").startswith(f"00-{span['trace']}-{span['span']}-".encode())
        assert span["attributes"]["messaging.destination.name"] == "orders"
        assert span["attributes"]["messaging.client.id"] == "orders"
        assert span["attributes"]["server.address"].startswith('"127.0.0.1:')
    assert headers[b"there"]["own"] == b"header"
    assert headers[b"untraced"] == {}, "it was uninstrumented before"
    keyed, there, anywhere = (span["attributes"].get("messaging.destination.partition.id") for span in sent)
    arrived = {span["parent"]: span["attributes"]["messaging.destination.partition.id"] for span in received}
    assert (keyed, there) == (arrived[sent[0]["span"]], "1")
    assert anywhere is None, "its partition is not known before it is sent"


@pytest.mark.parametrize("order", ["before", "after", "auto"])
def test_datadogs_instrumentation_traces_every_send_and_its_offset(order: str) -> None:
    """Instrumented before or after install(), or when aiokafka is imported, as ddtrace-run does."""
    printed, records = ran("ddtrace", "datadog_service.py", "orders", order)
    spans: list[dict[str, Any]] = json.loads(printed)
    sent, received = ([span for span in spans if span["name"] == f"kafka.{name}"] for name in ("produce", "consume"))
    headers = by_value(records)
    for span, value in zip(sent, (b"there", b"anywhere"), strict=True):
        assert headers[value]["x-datadog-parent-id"] == span["span"].encode()
        tags = span["tags"]
        assert tags["kafka.topic"] == "orders"
        assert tags["kafka.cluster_id"]
        assert tags["messaging.kafka.bootstrap.servers"].startswith("127.0.0.1:")
        (other,) = (one["tags"] for one in received if one["parent"] == span["span"])
        for tag in ("kafka.partition", "kafka.message_offset", "kafka.cluster_id"):
            assert tags[tag] == other[tag], "the consumer asks the cluster itself"
    assert sent[0]["tags"]["kafka.partition"] == 1
