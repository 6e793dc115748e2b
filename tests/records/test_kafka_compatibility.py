"""Kafka's own classes read what we write, and we read what they write: one run of Java judges all cases."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from aioproducer.records.compression import CompressionType, compress
from aioproducer.records.record import Record
from aioproducer.records.record_batch import RecordBatch, read_batches
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter
from tests.support.java_source import java_command

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]

NOW = 1_700_000_000_000

LEVELS: dict[CompressionType, list[int | None]] = {
    CompressionType.NONE: [None],
    CompressionType.GZIP: [None, 1, 9],
    CompressionType.SNAPPY: [None],
    CompressionType.LZ4: [None, 1, 9, 12, 17],
    CompressionType.ZSTD: [None, -131072, 1, 22],
}


@dataclass
class Case:
    """A batch to write: records as (timestamp, key, value, headers), and what else its header says."""

    name: str
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]
    header: dict[str, Any] = field(default_factory=dict)
    codec: CompressionType = CompressionType.NONE
    level: int | None = None

    def __str__(self) -> str:
        return f"{self.name}-{self.codec}{'' if self.level is None else self.level}"

    @cached_property
    def encoded(self) -> bytes:
        writer = RecordWriter()
        base_timestamp = self.records[0][0]
        for index, (timestamp, key, value, headers) in enumerate(self.records):
            writer.append(index, timestamp - base_timestamp, key, value, headers)
        body = compress(self.codec, writer.freeze(), self.level)
        header = {"max_timestamp": max(timestamp for timestamp, *_ in self.records), **self.header}
        return (
            encode_batch_header(
                body, count=len(self.records), base_timestamp=base_timestamp, codec=self.codec, **header
            )
            + body
        )

    @property
    def kafkas_levels(self) -> list[str]:
        """The levels at which Kafka is to write it."""
        if self.header.get("control"):
            return []
        if self.level is not None or not self.codec.levels:
            return ["default"]
        highest = self.codec.levels[-1]
        if highest == 22 and self.name != "text":
            highest = 19  # above, every batch costs Kafka half a gigabyte and a second
        return ["default", str(self.codec.levels[0]), str(highest)]

    @property
    def expected(self) -> list[Record]:
        return [
            Record(
                self.header.get("base_offset", 0) + index,
                self.header["max_timestamp"] if self.header.get("log_append_time") else timestamp,
                key,
                value,
                tuple(headers),
            )
            for index, (timestamp, key, value, headers) in enumerate(self.records)
        ]


def shapes() -> Iterator[Case]:
    rng = random.Random(20)
    yield Case("nothing", [(NOW, None, None, [])])
    yield Case("empty", [(NOW, b"", b"", [("", b"")]), (NOW, b"", None, []), (NOW, None, b"", [("h", None)])])
    yield Case("headers", [(NOW, b"k", b"v", [("trace", b"0" * 200), ("ключ🔑", b"\0\xff"), ("trace", None)] * 30)] * 3)
    yield Case("earlier-and-earlier", [(NOW - index * 10**10, b"%d" % index, b"value", []) for index in range(150)])
    yield Case("far-apart", [(0, b"k", b"v", []), (2**62, b"k", b"v", []), (1, b"k", b"v", [])])
    yield Case("no-timestamp", [(-1, b"k", b"v", [])])
    yield Case("text", [(NOW + index, None, b"line %d of many\n" % index * 5, []) for index in range(4000)])
    yield Case("noise", [(NOW, rng.randbytes(16), rng.randbytes(1000), []) for _ in range(300)])
    yield Case("one-large", [(NOW, None, rng.randbytes(70_000) + bytes(200_000) + rng.randbytes(70_000), [])])
    for block in (32 * 1024, 64 * 1024):
        for more in (-1, 0, 1):  # a length of 3 bytes, 3 for the value's, 6 single bytes
            yield Case(f"body-of-{block + more}", [(NOW, None, rng.randbytes(block + more - 12), [])])
    yield Case(
        "idempotent",
        [(NOW + index, b"k", b"v", []) for index in range(10)],
        {"producer_id": 2**62, "producer_epoch": 32767, "base_sequence": 2**31 - 5, "partition_leader_epoch": 7},
    )
    yield Case(
        "transactional",
        [(NOW, b"k", b"v", [])],
        {"producer_id": 0, "producer_epoch": 0, "base_sequence": 0, "transactional": True, "base_offset": 2**61},
    )
    yield Case(
        "log-append-time",
        [(NOW + index, b"k", b"v", []) for index in range(10)],
        {"log_append_time": True, "max_timestamp": NOW + 12345, "base_offset": 1000},
    )
    yield Case(
        "marker",
        [(NOW, bytes.fromhex("00000001"), bytes.fromhex("000000000005"), [])],
        {"producer_id": 5, "producer_epoch": 3, "transactional": True, "control": True},
    )


CASES = [
    Case(shape.name, shape.records, shape.header, codec, level)
    for shape in shapes()
    for codec, levels in LEVELS.items()
    for level in levels
    if codec is CompressionType.NONE or shape.name != "marker"
]


def hexed(value: bytes | None) -> str:
    return "null" if value is None else "x" + value.hex()


def described(case: Case) -> str:
    """What Java is to print about it."""
    (batch,) = read_batches(case.encoded)
    last_sequence = (batch.base_sequence + batch.count - 1) % 2**31 if batch.base_sequence >= 0 else -1
    lines = [
        f"batch {batch.base_offset}..{batch.base_offset + batch.count - 1} size {len(case.encoded)} "
        f"epoch {case.header.get('partition_leader_epoch', -1)} magic 2 {case.codec} "
        f"{'LogAppendTime' if case.header.get('log_append_time') else 'CreateTime'} max {batch.max_timestamp} "
        f"producer {case.header.get('producer_id', -1)} {case.header.get('producer_epoch', -1)} "
        f"sequences {case.header.get('base_sequence', -1)}..{last_sequence} count {len(case.records)}"
        f"{' transactional' if case.header.get('transactional') else ''}"
        f"{' control' if case.header.get('control') else ''}"
    ]
    for record in case.expected:
        words = [f"record {record.offset} {record.timestamp_ms} {hexed(record.key)} {hexed(record.value)}"]
        words += [f"{hexed(name.encode())}={hexed(value)}" for name, value in record.headers]
        lines.append(" ".join(words))
    return "\n".join(lines)


@dataclass
class Verdict:
    """By case: what Kafka found in our batch, and the batches it made of it."""

    found: dict[str, str] = field(default_factory=dict)
    written: dict[str, list[RecordBatch]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """Runs RecordBatches.java on all cases at once."""
    directory = tmp_path_factory.mktemp("batches")
    ours, levels, found, theirs = (directory / name for name in ("ours", "levels", "found", "theirs"))
    ours.write_bytes(b"".join(case.encoded for case in CASES))
    levels.write_text("".join(" ".join(case.kafkas_levels) + "\n" for case in CASES))
    source = Path(__file__).with_name("RecordBatches.java")
    run = subprocess.run(
        java_command(source, *map(str, (ours, levels, found, theirs)), heap="512m"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, f"{run.stderr}\nup to then:\n{found.read_text()[-500:] if found.exists() else ''}"

    verdict = Verdict()
    texts = found.read_text().removeprefix("batch ").split("\nbatch ")
    batches = read_batches(theirs.read_bytes())
    for case, text in zip(CASES, texts, strict=True):
        verdict.found[str(case)] = "batch " + text.rstrip("\n")
        verdict.written[str(case)] = [next(batches) for _ in case.kafkas_levels]
    assert not list(batches)
    return verdict


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kafka_reads_our_batch(case: Case, verdict: Verdict) -> None:
    assert verdict.found[str(case)] == described(case)


@pytest.mark.parametrize("case", [case for case in CASES if not case.header.get("control")], ids=str)
def test_we_read_kafkas_batch(case: Case, verdict: Verdict) -> None:
    (ours,) = read_batches(case.encoded)
    for batch in verdict.written[str(case)]:
        batch.verify()
        assert batch.codec is case.codec
        for name in (
            "base_offset", "last_offset_delta", "partition_leader_epoch", "magic", "attributes", "max_timestamp",
            "producer_id", "producer_epoch", "base_sequence", "count", "last_sequence",
        ):  # fmt: skip
            assert (name, getattr(batch, name)) == (name, getattr(ours, name))
        assert list(batch.records()) == case.expected
        if case.codec is CompressionType.NONE and not case.header.get("log_append_time"):
            # With log append time Kafka was given the broker's time for every record, and wrote other deltas.
            assert bytes(batch.data) == case.encoded
