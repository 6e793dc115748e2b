"""Avro and Protobuf, as docs/spark.md shows them, and Avro of the serializer for schema registries."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from aioproducer import KafkaProducer
from aioproducer.schema_registry import AvroSerializer, SchemaRegistryClient
from aioproducer.testing.kafka.kafka_libs import KafkaUnavailable, fetch_spark_avro
from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.support.schema_registry.fake_registry import fake_registry

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]

DOCUMENT = Path(__file__).parents[3] / "docs" / "spark.md"


@dataclass
class Order:
    id: int
    item: str


async def send_serialized(servers: str) -> None:
    """As the serializer for schema registries writes it: Spark reads what is behind the id."""
    with fake_registry() as registry:
        serializer = AvroSerializer(SchemaRegistryClient(registry.url), Order)
        async with KafkaProducer(bootstrap_servers=servers, value_serializer=serializer) as producer:
            await producer.send_many("serialized", [Order(number, f"item {number}") for number in range(3)])


@pytest.fixture
def jars() -> Path:
    try:
        if importlib.util.find_spec("pyspark") is None:
            raise KafkaUnavailable("pyspark is not installed (the dependency group spark)")
        if importlib.util.find_spec("google") is None:
            raise KafkaUnavailable("protobuf is not installed (the dependency group spark)")
        return fetch_spark_avro()
    except KafkaUnavailable as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI has to run Spark: {missing}", pytrace=False)
        pytest.skip(f"Avro and Protobuf are NOT tested: {missing}")


@pytest.mark.long
def test_records_written_as_the_document_shows_are_read_back(jars: Path, tmp_path: Path) -> None:
    with ThreadedCluster(topics=["avro", "protobuf", "framed", "serialized"]) as cluster:
        asyncio.run(send_serialized(cluster.bootstrap_servers))
        program = str(Path(__file__).with_name("formats.py"))
        arguments = [cluster.bootstrap_servers, str(jars), str(tmp_path), str(DOCUMENT)]
        ended = subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("JSON ")]
    orders = [[number, f"item {number}"] for number in range(3)]
    expected = {"avro": orders, "protobuf": orders, "framed": orders, "serialized": orders, "heads": ["0000000102"]}
    assert json.loads(line.removeprefix("JSON ")) == expected
