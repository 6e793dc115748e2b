"""Spark's Kafka source and sink on the embedded broker."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.kafka.kafka_libs import KafkaUnavailable, fetch_spark_connector

COUNT = 25
PARTITIONS = 3

pytestmark = [pytest.mark.conformance, pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def connector() -> Path:
    try:
        if importlib.util.find_spec("pyspark") is None:
            raise KafkaUnavailable("pyspark is not installed (the dependency group spark)")
        return fetch_spark_connector()
    except KafkaUnavailable as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI has to run Spark: {missing}", pytrace=False)
        pytest.skip(f"Spark's Kafka source is NOT tested: {missing}")


async def test_source_and_sink(connector: Path, tmp_path: Path) -> None:
    """A batch, a stream of several triggers, and records written by Spark; aborted transactions are not seen."""
    async with EmbeddedCluster(2) as cluster:
        cluster.create_topic("t", PARTITIONS)
        cluster.create_topic("copied", PARTITIONS)
        await produce(cluster.bootstrap_servers)
        said = await run_spark(cluster.bootstrap_servers, str(connector), str(tmp_path))
        written = [
            record.value for partition in cluster.topic("copied").partitions for record in partition.log.records()
        ]
    expected = sorted(f"value {number}" for number in range(COUNT))
    assert sorted(value for _, _, value in said["batch"]) == expected
    assert sorted(said["stream"]) == sorted(said["batch"]), "each record once, at the same place"
    assert said["triggers"] > 1
    assert sorted(value.decode() for value in written if value is not None) == sorted(map(str.upper, expected))


async def produce(servers: str) -> None:
    """Transactions of five records; after each a sixth in one that is aborted."""
    async with KafkaProducer(bootstrap_servers=servers, transactional_id="for-spark") as producer:
        await producer.init_transactions()
        for begin in range(0, COUNT, 5):
            async with producer.transaction():
                for number in range(begin, begin + 5):
                    await (await producer.enqueue("t", f"value {number}".encode(), partition=number % PARTITIONS))
            await producer.begin_transaction()
            await (await producer.enqueue("t", b"aborted", partition=begin % PARTITIONS))
            await producer.abort_transaction()


async def run_spark(*arguments: str) -> Any:
    script = Path(__file__).with_name("spark_source.py")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, str(script), *arguments, stdout=pipe, stderr=pipe)
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()[-4000:]
    (line,) = [line for line in out.decode().splitlines() if line.startswith("JSON ")]
    return json.loads(line.removeprefix("JSON "))
