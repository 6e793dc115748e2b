"""docs/migrating.md names what there is, on either side."""

from __future__ import annotations

import builtins
import inspect
import random
import re
import zlib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import aioproducer.errors
from aioproducer import PartitionInfo, TopicPartitions
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.testing.threaded_cluster import ThreadedCluster

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "migrating.md").read_text()
CONFIGS = {field.name for field in fields(ProducerConfig)}
NAMES = re.compile(r"`([a-z0-9_.]+)")


def section(client: str) -> str:
    return TEXT.partition(f"## From {client}\n")[2].partition("\n## From ")[0]


def arguments(client: str, header: str) -> Iterator[tuple[list[str], str]]:
    """The names in the first column of a table, and its second."""
    table = section(client).partition(f"| {header} |")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        left, right = (cell.strip() for cell in line.strip("|").split("|")[:2])
        yield NAMES.findall(left), right


def check(named: list[str], right: str) -> None:
    """What there is in its place is a config."""
    found = named if right == "the same" else NAMES.findall(right) if right.startswith("`") else []
    assert {name.replace(".", "_") for name in found} <= CONFIGS


def test_arguments_of_aiokafka() -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
    known = set(inspect.signature(aiokafka.AIOKafkaProducer).parameters)
    rows = list(arguments("aiokafka", "argument of aiokafka"))
    assert len(rows) > 8
    for named, right in rows:
        assert set(named) <= known
        check(named, right)


def test_arguments_of_kafka_python() -> None:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    rows = list(arguments("kafka-python", "argument of kafka-python"))
    assert len(rows) > 8
    for named, right in rows:
        assert set(named) <= set(kafka.KafkaProducer.DEFAULT_CONFIG)
        check(named, right)


def test_configs_of_librdkafka() -> None:
    rows = list(arguments("confluent-kafka", "config of librdkafka"))
    assert len(rows) > 20
    for named, right in rows:
        check(named, right)


def test_errors_are_there() -> None:
    assert {name for name in re.findall(r"\b[A-Z]\w+Exception\b", TEXT) if name != "KafkaException"} <= set(
        vars(aioproducer.errors)
    )


@pytest.mark.parametrize("client", ["aiokafka", "kafka-python"])
def test_errors_of_the_others_are_there(client: str) -> None:
    errors = pytest.importorskip({"aiokafka": "aiokafka.errors", "kafka-python": "kafka.errors"}[client])
    named = set(re.findall(r"\b[A-Z]\w+(?:Error|Fenced|Closed|Operation)\b", section(client)))
    assert len(named) > 5
    assert {name for name in named if not hasattr(errors, name) and not hasattr(builtins, name)} == set()


def test_keys_go_where_librdkafka_sends_them() -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    (block,) = re.findall(r"(def as_librdkafka.*?)\n\n\n", section("confluent-kafka"), re.DOTALL)
    names: dict[str, Any] = {"random": random, "zlib": zlib}
    exec(block, names)
    partitions = TopicPartitions(PartitionInfo("t", index, 0, 0, (0,), (0,), ()) for index in range(7))
    with ThreadedCluster(topics={"t": 7}) as cluster:
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
        keys = [b"key %d" % number for number in range(50)]
        for key in keys:
            producer.produce("t", b"", key)
        assert producer.flush(10) == 0
        found = {record.key: index for index in range(7) for record in cluster.records("t", index)}
    assert {key: names["as_librdkafka"]("t", key, key, b"", b"", partitions) for key in keys} == found


def test_the_line_before_the_import_is_the_one_that_is_tested() -> None:
    (block,) = re.findall(r"```py\n(.*?)```", section("aiokafka"), re.DOTALL)
    program = (ROOT / "tests" / "compat" / "faststream_service.py").read_text()
    places = [program.find(line) for line in block.splitlines() if line]
    assert -1 not in places
    assert places == sorted(places)
