"""Parses the output of Kafka's command line tools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from aioproducer.types import PartitionInfo, TimestampType

BYTES_DESERIALIZER: Final = "org.apache.kafka.common.serialization.BytesDeserializer"
HEADER_SEPARATOR: Final = "\x1e"

_ESCAPED: Final = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_TIMESTAMP_TYPES: Final = {
    b"CreateTime": TimestampType.CREATE_TIME,
    b"LogAppendTime": TimestampType.LOG_APPEND_TIME,
}


@dataclass(frozen=True, slots=True)
class ConsumedRecord:
    """One record as the console consumer printed it, byte for byte."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """``kafka-topics --describe`` of one topic; leader epochs are not printed, and are -1."""

    topic: str
    topic_id: str
    replication_factor: int
    configs: dict[str, str]
    partitions: tuple[PartitionInfo, ...]


@dataclass(frozen=True, slots=True)
class ProducerPerformanceResult:
    """The closing line of the producer performance tool; one MB is 2**20 bytes there."""

    records: int
    records_per_second: float
    mb_per_second: float
    average_latency_ms: float
    max_latency_ms: float
    p50_ms: int
    p95_ms: int
    p99_ms: int
    p999_ms: int


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """A batch in a log segment, as ``kafka-dump-log`` prints it."""

    base_offset: int
    last_offset: int
    count: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    is_transactional: bool
    is_control: bool
    timestamp_type: TimestampType
    max_timestamp_ms: int
    size: int
    codec: str
    valid: bool


def formatter_properties(null: str) -> dict[str, str]:
    """Properties that make the lines of the console consumer unambiguous, for ``parse_consumed``.

    Kafka's ``Bytes`` prints the backslash, and everything that is not printable ASCII, as ``\\xHH``. So tabs and line
    ends are always separators. ``null`` should be a word that no record contains.
    """
    printed = ("timestamp", "partition", "offset", "headers", "key", "value")
    return {
        **{f"print.{what}": "true" for what in printed},
        **{f"{what}.deserializer": BYTES_DESERIALIZER for what in ("key", "value", "headers")},
        "key.separator": "\t",
        "headers.separator": HEADER_SEPARATOR,
        "null.literal": null,
    }


def parse_consumed(topic: str, output: bytes, null: str) -> list[ConsumedRecord]:
    """The console consumer's lines, in the order they were printed.

    Header names are printed unescaped: a name with a colon, tab or line end cannot be read back.
    """
    none = null.encode()

    def content(field: bytes) -> bytes | None:
        if field == none:
            return None
        return _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), field) if b"\\" in field else field

    def header(field: bytes) -> tuple[str, bytes | None]:
        name, _, value = field.partition(b":")
        return name.decode(), content(value)

    records = []
    for line in output.split(b"\n")[:-1]:
        timestamp, partition, offset, headers, key, value = line.split(b"\t")
        kind, _, milliseconds = timestamp.partition(b":")
        records.append(
            ConsumedRecord(
                topic=topic,
                partition=int(partition.removeprefix(b"Partition:")),
                offset=int(offset.removeprefix(b"Offset:")),
                timestamp_ms=int(milliseconds),
                timestamp_type=_TIMESTAMP_TYPES[kind],
                key=content(key),
                value=content(value),
                headers=()
                if headers == b"NO_HEADERS"
                else tuple(header(field) for field in headers.split(HEADER_SEPARATOR.encode())),
            )
        )
    return records


def parse_offsets(output: str) -> dict[int, int]:
    """``topic:partition:offset`` lines of one topic: offsets by partition."""
    return {
        int(partition): int(offset)
        for _, partition, offset in (line.rsplit(":", 2) for line in output.splitlines() if line)
    }


def parse_table(output: str) -> list[dict[str, str]]:
    """Rows below a line of column names. Only the last cells of a row may be empty."""
    lines = [line.split() for line in output.splitlines() if line.strip()]
    return [dict(zip(lines[0], line, strict=False)) for line in lines[1:]]


def parse_features(output: str) -> dict[str, int]:
    """The finalized levels. Levels that are no numbers, such as that of ``metadata.version``, are left out."""
    return {name: int(level) for name, level in re.findall(r"Feature: (\S+).*FinalizedVersionLevel: (\d+)\s", output)}


def parse_description(output: str) -> TopicDescription:
    first, *others = [
        dict(field.split(":", 1) for field in line.strip().split("\t")) for line in output.splitlines() if line.strip()
    ]
    topic = first["Topic"].strip()
    return TopicDescription(
        topic=topic,
        topic_id=first["TopicId"].strip(),
        replication_factor=int(first["ReplicationFactor"]),
        configs=dict(config.split("=", 1) for config in first["Configs"].strip().split(",") if config),
        partitions=tuple(
            PartitionInfo(
                topic=topic,
                partition=int(fields["Partition"]),
                leader=_leader(fields["Leader"].strip()),
                leader_epoch=-1,
                replicas=_node_ids(fields["Replicas"]),
                in_sync_replicas=_node_ids(fields["Isr"]),
                offline_replicas=(),
            )
            for fields in others
        ),
    )


def _leader(text: str) -> int:
    return -1 if text == "none" else int(text)


def _node_ids(text: str) -> tuple[int, ...]:
    return tuple(int(node_id) for node_id in text.strip().split(",") if node_id)


def parse_performance(output: str) -> ProducerPerformanceResult:
    """The last line, such as ``1000 records sent, 3236.2 records/sec (0.03 MB/sec), 35.48 ms avg latency, …``."""
    number = r"([\d.]+)"
    found = re.findall(
        rf"^(\d+) records sent, {number} records/sec \({number} MB/sec\), {number} ms avg latency, "
        rf"{number} ms max latency, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99.9th",
        output,
        re.MULTILINE,
    )
    if not found:
        raise ValueError(f"no closing line of the producer performance tool in:\n{output}")
    records, rate, mb, average, longest, *percentiles = found[-1]
    p50, p95, p99, p999 = map(int, percentiles)
    return ProducerPerformanceResult(
        int(records), float(rate), float(mb), float(average), float(longest), p50, p95, p99, p999
    )


def parse_log(output: str) -> list[LoggedBatch]:
    batches = []
    for line in output.splitlines():
        if not line.startswith("baseOffset: "):
            continue
        fields = dict(re.findall(r"(\w+): (\S+)", line))
        kind = "LogAppendTime" if "LogAppendTime" in fields else "CreateTime"
        batches.append(
            LoggedBatch(
                base_offset=int(fields["baseOffset"]),
                last_offset=int(fields["lastOffset"]),
                count=int(fields["count"]),
                producer_id=int(fields["producerId"]),
                producer_epoch=int(fields["producerEpoch"]),
                base_sequence=int(fields["baseSequence"]),
                last_sequence=int(fields["lastSequence"]),
                is_transactional=fields["isTransactional"] == "true",
                is_control=fields["isControl"] == "true",
                timestamp_type=_TIMESTAMP_TYPES[kind.encode()],
                max_timestamp_ms=int(fields[kind]),
                size=int(fields["size"]),
                codec=fields["compresscodec"],
                valid=fields["isvalid"] == "true",
            )
        )
    return batches
