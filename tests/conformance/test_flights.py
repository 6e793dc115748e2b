"""A year of flights through ``aioproducer send`` to real Kafka, read back by Kafka's own console consumer."""

from __future__ import annotations

import asyncio
import csv
import io
import lzma
import sys
from pathlib import Path

import pytest

from aioproducer import ProducerRecord
from aioproducer.testing.delivered import assert_delivered
from aioproducer.testing.kafka.apache_kafka import ApacheKafka

from .topics import create_topic

YEAR = Path(__file__).parents[2] / "examples" / "flights.csv.xz"
FLIGHTS = 336_776
"""Of the year."""
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def read_flights() -> list[tuple[bytes, bytes]]:
    """The data set as pairs of key (the aircraft) and row."""
    lines = lzma.decompress(YEAR.read_bytes()).decode().splitlines()
    column = lines[0].split(",").index("tailnum")
    return [
        (row[column].encode(), line.encode())
        for row, line in zip(csv.reader(io.StringIO("\n".join(lines[1:]))), lines[1:], strict=True)
    ]


@pytest.mark.parametrize("flights", [50_000, pytest.param(FLIGHTS, marks=pytest.mark.long)])
async def test_every_flight_arrives_once_and_in_order_per_key(
    kafka_431: ApacheKafka, tmp_path: Path, flights: int
) -> None:
    """Each codec has its part of them, one after the other. (A few records show what older brokers make of codecs:
    test_console_tools.py.)"""
    kafka, topic = kafka_431, f"flights-{flights}"
    pairs = read_flights()
    assert len(pairs) == FLIGHTS
    pairs = pairs[:flights]
    await create_topic(kafka, topic, partitions=6)
    size = flights // len(CODECS) + 1
    for number, codec in enumerate(CODECS):
        path = tmp_path / f"{codec}.tsv"
        path.write_bytes(b"".join(b"%b\t%b\n" % pair for pair in pairs[number * size :][:size]))
        command = ["send", topic, str(path), "--format", "lines", "--key-separator", "\t"]
        options = ["--bootstrap-server", kafka.bootstrap_servers, "-X", f"compression.type={codec}"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "aioproducer", *command, *options, stderr=asyncio.subprocess.PIPE
        )
        _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()

    assert sum((await kafka.tools.get_offsets(topic)).values()) == flights
    consumed = await kafka.tools.console_consumer(topic, max_messages=flights, timeout=240)
    assert_delivered([ProducerRecord(topic, value, key) for key, value in pairs], consumed)
