from __future__ import annotations

import pickle

import pytest

from aioproducer.types import PartitionInfo, ProducerRecord, TimestampType, TopicPartition


def test_a_topic_partition_reads_as_kafka_writes_it() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"
    assert TopicPartition("orders", 3) == ("orders", 3)
    assert {TopicPartition("a", 1): 1}[TopicPartition("a", 1)] == 1


def test_a_record_is_a_value() -> None:
    record = ProducerRecord("orders", b"v", b"k", 3, 5, [("h", None)])
    assert record == ProducerRecord("orders", value=b"v", key=b"k", partition=3, timestamp_ms=5, headers=[("h", None)])
    assert ProducerRecord("orders") == ProducerRecord("orders", None, None, None, None, None)
    assert record._replace(value=b"other") == ProducerRecord("orders", b"other", b"k", 3, 5, [("h", None)])
    with pytest.raises(AttributeError):
        record.value = b"other"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(record)) == record


def test_timestamp_types_have_kafkas_numbers() -> None:
    assert [(kind.name, kind.value) for kind in TimestampType] == [("CREATE_TIME", 0), ("LOG_APPEND_TIME", 1)]


def test_a_partition_is_described_in_full() -> None:
    info = PartitionInfo("orders", 3, 1, 7, (1, 2), (1,), (2,))
    assert (info.leader, info.leader_epoch, info.replicas, info.in_sync_replicas) == (1, 7, (1, 2), (1,))
