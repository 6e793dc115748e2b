"""Avro and Protobuf, as docs/spark.md shows them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aioproducer.testing.kafka.kafka_libs import KafkaUnavailable, fetch_spark_avro
from aioproducer.testing.threaded_cluster import ThreadedCluster

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]

DOCUMENT = Path(__file__).parents[2] / "docs" / "spark.md"


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


def test_what_the_document_shows_is_read_back(jars: Path, tmp_path: Path) -> None:
    with ThreadedCluster(topics=["avro", "protobuf", "framed"]) as cluster:
        program = str(Path(__file__).with_name("formats.py"))
        arguments = [cluster.bootstrap_servers, str(jars), str(tmp_path), str(DOCUMENT)]
        ended = subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("JSON ")]
    orders = [[number, f"item {number}"] for number in range(3)]
    expected = {"avro": orders, "protobuf": orders, "framed": orders, "heads": ["0000000102"]}
    assert json.loads(line.removeprefix("JSON ")) == expected
