"""A year of flights through ``aioproducer send`` to real Kafka, read back by Kafka's own console consumer."""

from __future__ import annotations

import asyncio
import csv
import io
import lzma
import sys
from pathlib import Path

from aioproducer import ProducerRecord
from aioproducer.testing.delivered import assert_delivered
from aioproducer.testing.kafka.apache_kafka import ApacheKafka

from .topics import create_topic

YEAR = Path(__file__).parents[2] / "examples" / "flights.csv.xz"
FLIGHTS = 336_776
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def read_flights() -> list[tuple[bytes, bytes]]:
    """The data set as pairs of key (the aircraft) and row."""
    lines = lzma.decompress(YEAR.read_bytes()).decode().splitlines()
    column = lines[0].split(",").index("tailnum")
    return [
        (row[column].encode(), line.encode())
        for row, line in zip(csv.reader(io.StringIO("\n".join(lines[1:]))), lines[1:], strict=True)
    ]


async def test_every_flight_arrives_once_and_in_order_per_key(kafka_431: ApacheKafka, tmp_path: Path) -> None:
    """Each codec has its part of the year, one after the other. (A few records show what older brokers make of codecs:
    test_console_tools.py.)"""
    kafka = kafka_431
    pairs = read_flights()
    assert len(pairs) == FLIGHTS
    await create_topic(kafka, "flights", partitions=6)
    size = FLIGHTS // len(CODECS) + 1
    for number, codec in enumerate(CODECS):
        path = tmp_path / f"{codec}.tsv"
        path.write_bytes(b"".join(b"%b\t%b\n" % pair for pair in pairs[number * size :][:size]))
        command = ["send", "flights", str(path), "--format", "lines", "--key-separator", "\t"]
        options = ["--bootstrap-server", kafka.bootstrap_servers, "-X", f"compression.type={codec}"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "aioproducer", *command, *options, stderr=asyncio.subprocess.PIPE
        )
        _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()

    assert sum((await kafka.tools.get_offsets("flights")).values()) == FLIGHTS
    consumed = await kafka.tools.console_consumer("flights", max_messages=FLIGHTS, timeout=240)
    assert_delivered([ProducerRecord("flights", value, key) for key, value in pairs], consumed)
