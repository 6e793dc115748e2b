"""A year of flights through ``aioproducer send`` to real Kafka, read back by Kafka's own console consumer."""

from __future__ import annotations

import asyncio
import csv
import io
import lzma
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from aioproducer import ProducerRecord
from aioproducer.testing.apache_kafka import ApacheKafka
from aioproducer.testing.delivered import assert_delivered

FLIGHTS = 336_776


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[bytes, bytes]]]:
    """The data set as lines of key (the aircraft), tab and the row, and the same as pairs."""
    packed = files("aioproducer.cli").joinpath("data/flights.csv.xz").read_bytes()
    lines = lzma.decompress(packed).decode().splitlines()
    column = lines[0].split(",").index("tailnum")
    pairs = [
        (row[column].encode(), line.encode())
        for row, line in zip(csv.reader(io.StringIO("\n".join(lines[1:]))), lines[1:], strict=True)
    ]
    path = tmp_path_factory.mktemp("flights") / "flights.tsv"
    path.write_bytes(b"".join(b"%b\t%b\n" % pair for pair in pairs))
    return path, pairs


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_every_flight_arrives_once_and_in_order_per_key(
    kafka: ApacheKafka, flights: tuple[Path, list[tuple[bytes, bytes]]], codec: str
) -> None:
    path, pairs = flights
    assert len(pairs) == FLIGHTS
    topic = f"flights-{codec}"
    await kafka.tools.create_topic(topic, partitions=6)
    command = ["send", topic, str(path), "--format", "lines", "--key-separator", "\t"]
    options = ["--bootstrap-server", kafka.bootstrap_servers, "-X", f"compression.type={codec}"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "aioproducer", *command, *options, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()

    assert sum((await kafka.tools.get_offsets(topic)).values()) == FLIGHTS
    consumed = await kafka.tools.console_consumer(topic, max_messages=FLIGHTS, timeout=240)
    assert_delivered([ProducerRecord(topic, value, key) for key, value in pairs], consumed)
