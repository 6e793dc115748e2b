from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.testing.kafka.kafka_output import (
    ConsumedRecord,
    LoggedBatch,
    ProducerPerformanceResult,
    parse_consumed,
    parse_description,
    parse_features,
    parse_log,
    parse_offsets,
    parse_performance,
    parse_table,
)
from aioproducer.types import PartitionInfo, TimestampType

NULL = "null-1234"


def printed(content: bytes | None) -> str:
    """The output of Kafka's ``Bytes.toString``."""
    if content is None:
        return NULL
    return "".join(chr(b) if 32 <= b <= 126 and b != ord("\\") else f"\\x{b:02X}" for b in content)


def line(record: ConsumedRecord) -> str:
    kind = "CreateTime" if record.timestamp_type is TimestampType.CREATE_TIME else "LogAppendTime"
    headers = "\x1e".join(f"{name}:{printed(value)}" for name, value in record.headers) or "NO_HEADERS"
    return (
        f"{kind}:{record.timestamp_ms}\tPartition:{record.partition}\tOffset:{record.offset}\t{headers}"
        f"\t{printed(record.key)}\t{printed(record.value)}\n"
    )


contents = st.none() | st.binary(max_size=20)
records = st.builds(
    ConsumedRecord,
    topic=st.just("t"),
    partition=st.integers(0, 100),
    offset=st.integers(0, 2**63 - 1),
    timestamp_ms=st.integers(-1, 2**63 - 1),
    timestamp_type=st.sampled_from(TimestampType),
    key=contents,
    value=contents,
    headers=st.lists(st.tuples(st.text("hé-_.x", max_size=5), contents), max_size=3).map(tuple),
)


@given(st.lists(records, max_size=5))
def test_any_record_is_read_back(expected: list[ConsumedRecord]) -> None:
    assert parse_consumed("t", "".join(map(line, expected)).encode(), NULL) == expected


def test_offsets() -> None:
    assert parse_offsets("t:x:0:12\nt:x:1:0\n") == {0: 12, 1: 0}


def test_description() -> None:
    described = parse_description(
        "Topic: t\tTopicId: 1UsgJNn5QVGPAnX69uuEtg\tPartitionCount: 2\tReplicationFactor: 3\t"
        "Configs: min.insync.replicas=2,cleanup.policy=delete\n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,3\tElr: \tLastKnownElr: \n"
        "\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 2,3,1\tIsr: \tElr: \tLastKnownElr: \n"
    )
    assert (described.topic, described.topic_id) == ("t", "1UsgJNn5QVGPAnX69uuEtg")
    assert described.replication_factor == 3
    assert described.configs == {"min.insync.replicas": "2", "cleanup.policy": "delete"}
    assert described.partitions == (
        PartitionInfo("t", 0, 1, -1, (1, 2, 3), (1, 3), ()),
        PartitionInfo("t", 1, -1, -1, (2, 3, 1), (), ()),
    )


def test_description_without_configs() -> None:
    described = parse_description("Topic: t\tTopicId: x\tPartitionCount: 0\tReplicationFactor: 1\tConfigs: \n")
    assert described.configs == {}
    assert described.partitions == ()


def test_the_last_line_of_a_performance_run_counts() -> None:
    output = (
        "500 records sent, 100.0 records/sec (0.03 MB/sec), 35.5 ms avg latency, 277.0 ms max latency.\n"
        "1000 records sent, 3236.245955 records/sec (0.31 MB/sec), 35.48 ms avg latency, 277.00 ms max latency, "
        "37 ms 50th, 40 ms 95th, 41 ms 99th, 276 ms 99.9th.\n"
    )
    assert parse_performance(output) == ProducerPerformanceResult(
        1000, 3236.245955, 0.31, 35.48, 277.0, p50_ms=37, p95_ms=40, p99_ms=41, p999_ms=276
    )
    with pytest.raises(ValueError, match="no closing line"):
        parse_performance("org.apache.kafka.common.KafkaException\n")


def test_tables() -> None:
    output = "TransactionalId \tProducerId \tTopicPartitions \nx               \t7          \tt-0,t-1 \ny \t8 \t\n"
    assert parse_table(output) == [
        {"TransactionalId": "x", "ProducerId": "7", "TopicPartitions": "t-0,t-1"},
        {"TransactionalId": "y", "ProducerId": "8"},
    ]
    assert parse_table("TransactionalId\n") == []


def test_features() -> None:
    supported = "SupportedMinVersion: 0\tSupportedMaxVersion: 2"
    output = (
        f"Feature: metadata.version\t{supported}\tFinalizedVersionLevel: 4.3-IV0\tEpoch: 6\n"
        f"Feature: transaction.version\t{supported}\tFinalizedVersionLevel: 2\tEpoch: 6\n"
    )
    assert parse_features(output) == {"transaction.version": 2}


def test_log_segments() -> None:
    output = (
        "Dumping /data/t-0/00000000000000000000.log\nLog starting offset: 0\n"
        "baseOffset: 2 lastOffset: 234 count: 233 baseSequence: 0 lastSequence: 232 producerId: 1 producerEpoch: 4 "
        "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
        "position: 154 CreateTime: 1795256310026 size: 3691 magic: 2 compresscodec: lz4 crc: 3183835647 isvalid: true\n"
        "baseOffset: 235 lastOffset: 235 count: 1 baseSequence: -1 lastSequence: -1 producerId: 1 producerEpoch: 4 "
        "partitionLeaderEpoch: 0 isTransactional: true isControl: true deleteHorizonMs: OptionalLong.empty "
        "position: 3845 LogAppendTime: 5 size: 78 magic: 2 compresscodec: none crc: 1 isvalid: false\n"
    )
    create, append = TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME
    assert parse_log(output) == [
        LoggedBatch(2, 234, 233, 1, 4, 0, 232, False, False, create, 1795256310026, 3691, "lz4", True),
        LoggedBatch(235, 235, 1, 1, 4, -1, -1, True, True, append, 5, 78, "none", False),
    ]
