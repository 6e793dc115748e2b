"""An audit of records that Spark's sink wrote, with its delivery logs and later damage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.delivery_log import read_events
from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.spark.foreign import read_committed

pytestmark = pytest.mark.conformance

PARTITIONS = 2
ROWS = 300
CONFIGS = {"auto.create.topics.enable": "false", "log.message.timestamp.type": "LogAppendTime"}


@pytest.fixture
def cluster() -> Iterator[ThreadedCluster]:
    with ThreadedCluster(topics={"orders": PARTITIONS, "log": 1}, configs=CONFIGS) as cluster:
        yield cluster


def write(spark: Any, cluster: ThreadedCluster, log: str, **more: str) -> None:
    frame = spark.range(0, ROWS, 1, 3).selectExpr("CAST(id AS STRING) AS key", "concat('order ', id) AS value")
    options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "topic": "orders", "deliveryLog": log, **more}
    frame.write.format("aioproducer").options(**options).mode("append").save()


def audited(spark: Any, cluster: ThreadedCluster, place: Path, *logs: str) -> Any:
    from aioproducer.spark.audit.run import audit_topics

    config = {"bootstrap.servers": cluster.bootstrap_servers}
    options = AuditOptions(now_ms=round(time.time() * 1000))
    work = audit_topics(spark, config, ["orders"], str(place), options, delivery_logs=logs, read_committed=True)
    return asyncio.run(work)


async def make_anew(servers: str) -> None:
    """An empty topic of the same name."""
    async with KafkaAdmin(bootstrap_servers=servers) as admin:
        await admin.delete_topic("orders")
        await admin.create_topic(NewTopic("orders", PARTITIONS))


def restored_badly(cluster: ThreadedCluster) -> None:
    """A foreign client restores the topic: two records are not there any more, and three of them twice."""
    servers = cluster.bootstrap_servers
    by_partition: list[list[Any]] = [[], []]
    for message in read_committed(servers, "orders", PARTITIONS):
        by_partition[message.partition()].append(message)
    asyncio.run(make_anew(servers))
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for message in [*by_partition[0][:-2], *by_partition[1], *by_partition[1][:3]]:
        kept = {"key": message.key(), "headers": message.headers(), "partition": message.partition()}
        producer.produce("orders", message.value(), **kept)
    assert producer.flush(60) == 0


def test_an_intact_write_is_proved_and_damage_by_a_foreign_client_is_found(
    spark: Any, cluster: ThreadedCluster, tmp_path: Path
) -> None:
    write(spark, cluster, "topic:log")
    before = audited(spark, cluster, tmp_path / "before", "topic:log")
    assert before.verdict == f"OK: {ROWS} records, and every check passed"
    assert before.totals["acknowledged"] == ROWS
    assert before.totals["streams"] == 3, "one for each task"

    restored_badly(cluster)
    after = audited(spark, cluster, tmp_path / "after", "topic:log")
    found = {found.kind: found.records for found in after.found if found.kind is not Kind.LATE}
    assert found == {Kind.MISSING: 2, Kind.DUPLICATE: 2 * 3}


@pytest.mark.long
def test_exactly_once_with_logs_in_a_directory(spark: Any, cluster: ThreadedCluster, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for _ in range(2):  # the second time nothing is written, and nothing logged
        write(spark, cluster, str(logs), deliveryGuarantee="exactly-once", writeId="w")
    files = list(logs.iterdir())
    assert len(files) == 3
    logged = [event for file in files for event in read_events(file)]
    assert [event["event"] for event in logged].count("acked") == ROWS
    summary = audited(spark, cluster, tmp_path / "audit", f"{logs}/*.jsonl")
    assert summary.verdict == f"OK: {ROWS} records, and every check passed"
    assert summary.transactions.keys() == {"committed"}


def test_a_log_that_cannot_be_written_does_not_fail_the_rows(
    spark: Any, cluster: ThreadedCluster, tmp_path: Path
) -> None:
    """The rows are delivered all the same."""
    write(spark, cluster, "topic:nosuch", **{"kafka.max.block.ms": "2000"})
    assert len(read_committed(cluster.bootstrap_servers, "orders", PARTITIONS)) == ROWS


@pytest.mark.long
def test_copies_without_stamps_are_not_called_in_order(spark: Any, cluster: ThreadedCluster, tmp_path: Path) -> None:
    """Without stamps, a log and a comparison of contents the audit cannot know that there are none."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for _ in range(50):
        producer.produce("orders", b"the same", key=b"k", partition=0)
    assert producer.flush(60) == 0
    summary = audited(spark, cluster, tmp_path)
    assert (summary.ok, summary.proved) == (True, False)
    assert summary.verdict.startswith("Nothing found in 50 records, but not everything could be checked; unknown: ")
    assert "no record is there twice" in summary.verdict
    reason = "no record is there twice (not checked for any record: they have no stamps of a delivery log, "
    assert any(sentence.startswith(reason) for sentence in summary.not_checked)
