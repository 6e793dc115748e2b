"""The pytest plugin, in separate pytest runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import aioproducer

pytestmark = pytest.mark.once

PLUGIN = "aioproducer.testing.pytest_broker"

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The output of pytest for a file with these tests; ``options`` are those of its command line."""

    def run(tests: str, *options: str) -> str:
        (tmp_path / "test_it.py").write_text(tests)
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
        command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", "-W", "error", *options]
        if "no:asyncio" not in options:
            command += ["-o", "asyncio_default_fixture_loop_scope=function"]
        path = str(Path(aioproducer.__file__).parents[1])
        done = subprocess.run(
            command, cwd=tmp_path, env={"PYTHONPATH": path}, capture_output=True, text=True, timeout=50
        )
        return done.stdout + done.stderr

    return run


COMMON = """
import pytest
from aioproducer import KafkaProducer
from aioproducer.testing import ApiKey, ErrorCode

async def send(cluster, topic="t"):
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        return await producer.send(topic, b"value")
"""


def test_every_test_has_a_cluster_of_its_own(run: Run) -> None:
    said = run(
        COMMON
        + """
import asyncio, threading, time

def test_without_a_loop(kafka_broker):
    assert asyncio.run(send(kafka_broker)).offset == 0
    assert [record.value for record in kafka_broker.records("t")] == [b"value"]

async def test_with_pytest_asyncio(kafka_broker):
    assert kafka_broker.topics() == {}
    assert (await send(kafka_broker)).offset == 0

@pytest.mark.kafka(nodes=2, topics={"t": 4}, configs={"num.partitions": 3})
class TestMarked:
    async def test_as_the_class_says(self, kafka_cluster):
        assert kafka_cluster.bootstrap_servers.count(":") == 2
        await send(kafka_cluster, "made")
        assert kafka_cluster.topics() == {"t": 4, "made": 3}

    @pytest.mark.kafka(nodes=1)
    async def test_the_closest_marker_wins(self, kafka_cluster):
        assert kafka_cluster.bootstrap_servers.count(":") == 1
        assert kafka_cluster.topics() == {"t": 4}

def test_three_nodes(kafka_cluster):
    assert kafka_cluster.bootstrap_servers.count(":") == 3

def test_nothing_is_left_running():
    end = time.monotonic() + 10  # a thread that has looked up an address ends a moment later
    while threading.active_count() > 1 and time.monotonic() < end:
        time.sleep(0.01)
    assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
""",
        "--asyncio-mode=auto",
    )
    assert "6 passed" in said, said


def test_a_loop_of_anyio(run: Run) -> None:
    pytest.importorskip("anyio")
    said = run(
        COMMON
        + """
@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
async def test_with_anyios_plugin(kafka_broker):
    assert (await send(kafka_broker)).offset == 0
""",
        "-p",
        "no:asyncio",
    )
    assert "1 passed" in said, said


def test_a_fault_that_never_happens_fails_the_test(run: Run) -> None:
    said = run(
        COMMON
        + """
async def test_it_happens(kafka_broker):
    rule = kafka_broker.faults.on(ApiKey.PRODUCE).answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    await send(kafka_broker)
    assert len(rule.hits) == 1

async def test_it_does_not(kafka_broker):
    kafka_broker.faults.on(ApiKey.PRODUCE, nth=9).drop_response()
    await send(kafka_broker)

@pytest.mark.kafka(unused_faults="ignore")
async def test_nobody_cares(kafka_broker):
    kafka_broker.faults.on(ApiKey.PRODUCE, nth=9).drop_response()

async def test_only_what_it_failed_of_is_reported(kafka_broker):
    kafka_broker.faults.on(ApiKey.PRODUCE).drop_response()
    raise KeyError("this")
""",
        "--asyncio-mode=auto",
    )
    assert "2 failed, 2 passed" in said, said
    assert said.count("these faults were scripted and never happened:") == 2, "in the failure and in the summary"
    assert "PRODUCE number 9: the response dropped (matched 1)" in said


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("3", "@pytest.mark.kafka takes names, as in nodes=3"),
        ("node=3", "unexpected keyword argument 'node'"),
        ("nodes=0", "a cluster has at least one node, not 0"),
        ("configs={'num.partition': 1}", "did you mean 'num.partitions'?"),
        ("unused_faults='no'", "unused_faults is 'error' or 'ignore', not 'no'"),
    ],
)
def test_wrong_markers(run: Run, mark: str, message: str) -> None:
    said = run(COMMON + f"\n@pytest.mark.kafka({mark})\ndef test(kafka_broker): pass\n")
    assert "1 error" in said, said
    assert message in said


def test_it_costs_nothing_where_it_is_not_used(run: Run) -> None:
    """Every pytest run loads the plugin where aioproducer is installed."""
    said = run(
        """
import sys
def test():
    print(sorted(name for name in sys.modules if name.startswith("aioproducer")))
    print(sorted(name for name in sys.modules if name in ("asyncio", "typer", "fastcrc")))
""",
        "-s",
        "-p",
        "no:asyncio",
        "-p",
        "no:anyio",
        "-p",
        "no:timeout",
    )
    assert "['aioproducer', 'aioproducer.testing', 'aioproducer.testing.pytest_broker']\n" in said, said
