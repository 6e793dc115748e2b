"""Consumers of others with fetch sessions, which the broker ends again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.handlers.fetch_sessions import FetchSessionCache
from aioproducer.records.record_batch import RecordBatch
from aioproducer.testing.kafka.kafka_tools import KafkaTools
from tests.broker.raw_clients.batches import NOW_MS, make_batch

pytestmark = pytest.mark.timeout(60)

PARTITIONS = 20
ROUNDS = 12


class Sessions:
    """The fetch sessions of the only node, and the fetches that it received."""

    def __init__(self, cluster: EmbeddedCluster, patch: pytest.MonkeyPatch) -> None:
        (server,) = cluster._servers.values()
        self.cache = server.context.fetch_sessions
        self.fetches: list[tuple[int, int]] = []
        """The epoch of each fetch, and how many partitions it named."""
        begin = FetchSessionCache.begin

        def noting(cache: FetchSessionCache, request: Any, *rest: Any) -> Any:
            self.fetches.append((request.session_epoch, sum(len(topic.partitions) for topic in request.topics)))
            return begin(cache, request, *rest)

        patch.setattr(FetchSessionCache, "begin", noting)

    def end_all(self) -> None:
        for id in tuple(self.cache._sessions):
            self.cache.remove(id)

    @property
    def incremental(self) -> list[int]:
        """How many partitions each incremental fetch named."""
        return [named for epoch, named in self.fetches if epoch > 0]


@pytest.fixture
async def sessions(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    cluster.create_topic("t", partitions=PARTITIONS)
    return Sessions(cluster, monkeypatch)


def value(round: int, partition: int) -> bytes:
    return b"%d of %d" % (round, partition)


def append(cluster: EmbeddedCluster, round: int) -> list[bytes]:
    """A record to some of the partitions."""
    appended = []
    for index in range(round % 3, PARTITIONS, 3):
        partition = cluster.topic("t").partitions[index]
        appended.append(value(round, index))
        partition.log.append(RecordBatch(make_batch(appended[-1])), leader_epoch=0, now_ms=NOW_MS)
        partition.notify()
    return appended


async def consumed(cluster: EmbeddedCluster, sessions: Sessions, poll: Callable[[], list[bytes]]) -> None:
    """Whatever is appended is consumed once, though every third round finds its session ended."""
    for round in range(ROUNDS):
        if round % 3 == 2:
            sessions.end_all()
        expected = append(cluster, round)
        found: list[bytes] = []
        while len(found) < len(expected):
            found += await asyncio.to_thread(poll)
        assert sorted(found) == sorted(expected)


async def test_kafka_python(cluster: EmbeddedCluster, sessions: Sessions) -> None:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    # In a thread, as it waits for the broker.
    consumer = await asyncio.to_thread(
        kafka.KafkaConsumer, bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest"
    )

    def poll() -> list[bytes]:
        return [record.value for records in consumer.poll(1000).values() for record in records]

    try:
        consumer.assign([kafka.TopicPartition("t", index) for index in range(PARTITIONS)])
        await consumed(cluster, sessions, poll)
    finally:
        await asyncio.to_thread(consumer.close)
    assert sessions.incremental
    assert min(sessions.incremental) < PARTITIONS


async def test_librdkafka_fetches_without(cluster: EmbeddedCluster, sessions: Sessions) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    consumer = confluent.Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "enable.auto.commit": False}
    )

    def poll() -> list[bytes]:
        return [message.value() for message in consumer.consume(100, timeout=0.1) if not message.error()]

    try:
        consumer.assign([confluent.TopicPartition("t", index, 0) for index in range(PARTITIONS)])
        await consumed(cluster, sessions, poll)
    finally:
        await asyncio.to_thread(consumer.close)
    assert not sessions.incremental


@pytest.mark.conformance
@pytest.mark.timeout(180)
async def test_kafkas_console_consumer(
    cluster: EmbeddedCluster, sessions: Sessions, java_tools: Callable[[EmbeddedCluster], KafkaTools]
) -> None:
    expected = [value(round, index) for round in range(ROUNDS) for index in range(round % 3, PARTITIONS, 3)]
    consuming = asyncio.create_task(java_tools(cluster).console_consumer("t", max_messages=len(expected)))
    for round in range(ROUNDS):
        before = len(sessions.fetches)
        while len(sessions.fetches) < before + 2 and not consuming.done():  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)
        if round % 3 == 2:
            sessions.end_all()
        append(cluster, round)
    assert sorted(record.value or b"" for record in await consuming) == sorted(expected)
    assert sessions.incremental
    assert min(sessions.incremental) == 0
