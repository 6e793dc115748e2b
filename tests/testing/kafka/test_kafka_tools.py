from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aioproducer.testing.delivered import assert_delivered
from aioproducer.testing.kafka.apache_kafka import ApacheKafka, KafkaFailed
from aioproducer.testing.kafka.kafka_tools import KafkaTools
from aioproducer.testing.process_guard import ProcessGuard
from aioproducer.testing.pytest_kafka import running_kafka
from aioproducer.types import ProducerRecord, TimestampType
from tests.support.kafka_releases import RELEASES

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", params=RELEASES)
def kafka(request: pytest.FixtureRequest) -> Iterator[ApacheKafka]:
    with running_kafka(request.param) as kafka:
        yield kafka


def encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


async def test_topics(kafka: ApacheKafka) -> None:
    tools = kafka.tools
    await tools.create_topic("topics.x", partitions=3, configs={"retention.ms": "100000000"})
    assert "topics.x" in await tools.list_topics()
    described = await tools.describe_topic("topics.x")
    assert described.configs["retention.ms"] == "100000000"
    assert [(p.partition, p.leader, p.replicas, p.in_sync_replicas) for p in described.partitions] == [
        (partition, 1, (1,), (1,)) for partition in range(3)
    ]
    with pytest.raises(KafkaFailed, match=r"TopicCommand ended with exit status 1:(.|\n)*already exists"):
        await tools.create_topic("topics.x")
    assert await tools.get_offsets("topics.x") == {0: 0, 1: 0, 2: 0}
    await tools.delete_topic("topics.x")
    assert "topics.x" not in await tools.list_topics()


async def test_quotas(kafka: ApacheKafka) -> None:
    await kafka.tools.set_quota("somebody", {"producer_byte_rate": 20_000})
    with pytest.raises(KafkaFailed, match="no_such_quota"):
        await kafka.tools.set_quota("somebody", {"no_such_quota": 1})


async def test_records_there_and_back(kafka: ApacheKafka) -> None:
    tools, before = kafka.tools, time.time_ns() // 1_000_000
    await tools.create_topic("console", partitions=3)
    pairs: list[tuple[str | None, str | None]] = [
        *((f"key {n % 7}", f"välue\\ {n}") for n in range(50)),
        (None, "no key"),
        ("no value", None),
        ("", ""),
        ("null", "null"),
    ]
    await tools.console_producer("console", pairs)

    sent = [ProducerRecord("console", key=encoded(key), value=encoded(value)) for key, value in pairs]
    consumed = await tools.console_consumer("console", max_messages=len(pairs))
    assert_delivered(sent, consumed)
    assert {record.timestamp_type for record in consumed} == {TimestampType.CREATE_TIME}
    assert all(before <= record.timestamp_ms <= time.time_ns() // 1_000_000 for record in consumed)
    ends = await tools.get_offsets("console")
    assert sum(ends.values()) == len(pairs)
    assert await tools.get_offsets("console", time="earliest") == {0: 0, 1: 0, 2: 0}

    batches = await tools.dump_log(kafka.data_directory(1) / "console-1")
    assert sum(batch.count for batch in batches) == ends[1]
    assert all(batch.valid and batch.codec == "none" and batch.base_sequence >= 0 for batch in batches)

    of_one = await tools.console_consumer("console", partition=1, timeout_ms=5000)
    assert of_one == [record for record in consumed if record.partition == 1]


async def test_producer_performance(kafka: ApacheKafka) -> None:
    await kafka.tools.create_topic("performance")
    result = await kafka.tools.producer_performance(
        "performance", num_records=1000, record_size=10, configs={"compression.type": "lz4"}
    )
    assert result.records == 1000
    assert result.records_per_second > 0
    assert await kafka.tools.get_offsets("performance") == {0: 1000}
    batches = await kafka.tools.dump_log(kafka.data_directory(1) / "performance-0")
    assert {batch.codec for batch in batches} == {"lz4"}


async def test_records_that_cannot_be_sent(kafka: ApacheKafka) -> None:
    with pytest.raises(ValueError, match="cannot hold a tab or a line end"):
        await kafka.tools.console_producer("t", [("a\tb", "c")])
    with pytest.raises(ValueError, match="cannot hold a tab or a line end"):
        await kafka.tools.console_producer("t", [("a", "c\r")])
    await kafka.tools.create_topic("small", configs={"max.message.bytes": "100"})
    with pytest.raises(KafkaFailed, match=r"did not deliver everything:(.|\n)*RecordTooLargeException"):
        await kafka.tools.console_producer("small", [("key", "x" * 1000)])


async def test_a_consumer_has_to_end(kafka: ApacheKafka) -> None:
    with pytest.raises(ValueError, match="would never end"):
        await kafka.tools.console_consumer("t")
    await kafka.tools.create_topic("empty")
    assert await kafka.tools.console_consumer("empty", timeout_ms=500) == []
    with pytest.raises(KafkaFailed, match="ConsoleConsumer was not done within 2 s"):
        await kafka.tools.console_consumer("empty", max_messages=1, timeout=2)


async def test_a_cancelled_tool_ends(kafka: ApacheKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, spawned, spawn = asyncio.get_running_loop(), asyncio.Event(), ProcessGuard.spawn
    processes: list[subprocess.Popen[bytes]] = []

    def spawn_and_record(guard: ProcessGuard, *arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        processes.append(spawn(guard, *arguments, **options))
        loop.call_soon_threadsafe(spawned.set)
        return processes[-1]

    monkeypatch.setattr(ProcessGuard, "spawn", spawn_and_record)
    consuming = asyncio.create_task(kafka.tools.console_consumer("t", max_messages=1))
    await spawned.wait()
    consuming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consuming
    assert [process.returncode for process in processes] == [-signal.SIGKILL]


def test_tools_come_from_a_release(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no Kafka release in .*: there is no kafka-tools-\*\.jar"):
        KafkaTools(tmp_path, "127.0.0.1:9092")


async def test_no_segments_no_dump(kafka: ApacheKafka, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no partition's directory"):
        await kafka.tools.dump_log(tmp_path)
