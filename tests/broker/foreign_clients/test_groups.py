"""Consumer groups of clients that know nothing of this project, on the embedded broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.kafka.apache_kafka import KafkaTools

pytestmark = pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)

COUNT = 40
EVERYTHING = {b"%d" % number for number in range(COUNT)}


@pytest.fixture(autouse=True)
async def topic(cluster: EmbeddedCluster) -> None:
    """Four partitions of ten records each."""
    cluster.create_topic("t", 4)
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        for number in range(COUNT):
            _ = producer.send("t", b"%d" % number, partition=number % 4)


def committed(cluster: EmbeddedCluster, group: str) -> dict[int, int]:
    """The offsets by partition."""
    offsets = cluster._groups.offsets.committed(group)
    return {partition: offset.offset for (_, partition), offset in offsets.items()}


class TestAiokafka:
    @pytest.fixture(autouse=True)
    def aiokafka(self) -> Any:
        return pytest.importorskip("aiokafka", reason="aiokafka is not installed")

    async def test_members_come_and_go(self, cluster: EmbeddedCluster, aiokafka: Any) -> None:
        def consumer() -> Any:
            return aiokafka.AIOKafkaConsumer(
                "t",
                bootstrap_servers=cluster.bootstrap_servers,
                group_id="g",
                auto_offset_reset="earliest",
                heartbeat_interval_ms=20,
                metadata_max_age_ms=1000,
            )

        first, second = consumer(), consumer()
        await first.start()
        read = [(await first.getone()).value for _ in range(COUNT)]
        assert set(read) == EVERYTHING
        await first.commit()
        joining = asyncio.create_task(second.start())
        while len(first.assignment()) != 2 or len(second.assignment()) != 2:
            await first.getmany(timeout_ms=10)
        await joining
        assert first.assignment().isdisjoint(second.assignment())
        await first.stop()
        while len(second.assignment()) != 4:
            await second.getmany(timeout_ms=10)
        await second.stop()
        assert committed(cluster, "g") == dict.fromkeys(range(4), COUNT // 4)


class TestConfluent:
    @pytest.fixture(autouse=True)
    def confluent(self) -> Any:
        return pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

    async def test_members_come_and_go(self, cluster: EmbeddedCluster, confluent: Any) -> None:
        await asyncio.to_thread(self.consume, confluent, cluster.bootstrap_servers)
        assert committed(cluster, "g") == dict.fromkeys(range(4), COUNT // 4)
        module = pytest.importorskip("confluent_kafka.admin")
        admin = module.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        listed = await asyncio.to_thread(admin.list_consumer_groups().result, 10)
        assert [(one.group_id, one.state.name) for one in listed.valid] == [("g", "EMPTY")]
        (future,) = admin.delete_consumer_groups(["g"]).values()
        await asyncio.to_thread(future.result, 10)
        assert committed(cluster, "g") == {}

    @pytest.mark.parametrize("strategy", ["range,roundrobin", "cooperative-sticky"])
    async def test_both_kinds_of_rebalance(self, cluster: EmbeddedCluster, confluent: Any, strategy: str) -> None:
        await asyncio.to_thread(self.consume, confluent, cluster.bootstrap_servers, strategy)

    def consume(self, confluent: Any, servers: str, strategy: str = "range") -> None:
        def consumer() -> Any:
            made = confluent.Consumer(
                {
                    "bootstrap.servers": servers,
                    "group.id": "g",
                    "auto.offset.reset": "earliest",
                    "heartbeat.interval.ms": 50,
                    "partition.assignment.strategy": strategy,
                }
            )
            made.subscribe(["t"])
            return made

        first, second = consumer(), None
        values: set[bytes] = set()
        while values != EVERYTHING:
            message = first.poll(10)
            assert message is not None
            assert message.error() is None
            values.add(message.value())
        first.commit(asynchronous=False)
        second = consumer()
        while len(first.assignment()) != 2 or len(second.assignment()) != 2:
            first.poll(0.02)
            second.poll(0.02)
        first.close()
        while len(second.assignment()) != 4:
            second.poll(0.02)
        second.close()


class TestKafkaPython:
    async def test_a_group(self, cluster: EmbeddedCluster) -> None:
        kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
        await asyncio.to_thread(self.consume, kafka, cluster.bootstrap_servers)
        assert committed(cluster, "g") == dict.fromkeys(range(4), COUNT // 4)

    def consume(self, kafka: Any, servers: str) -> None:
        consumer = kafka.KafkaConsumer(
            "t", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest", enable_auto_commit=False
        )
        assert {next(consumer).value for _ in range(COUNT)} == EVERYTHING
        consumer.commit()
        consumer.close()


@pytest.mark.conformance
@pytest.mark.timeout(300)
async def test_kafkas_own_consumer(
    cluster: EmbeddedCluster, java_tools: Callable[[EmbeddedCluster], KafkaTools]
) -> None:
    tools = java_tools(cluster)
    configs = {"group.id": "g", "auto.offset.reset": "earliest", "group.protocol": "classic"}
    read = await tools.console_consumer("t", max_messages=COUNT, configs=configs)
    assert {record.value for record in read} == EVERYTHING
    assert committed(cluster, "g") == dict.fromkeys(range(4), COUNT // 4)
    group = "--group", "g"
    listed = await tools.consumer_groups("--list", "--state")
    assert listed.split()[-2:] == ["g", "Empty"]
    described = await tools.consumer_groups("--describe", *group)
    assert described.count(" 10 ") >= 8, "offset and end of each partition"
    await tools.consumer_groups("--reset-offsets", *group, "--topic", "t:1", "--to-offset", "3", "--execute")
    assert committed(cluster, "g")[1] == 3
    await tools.consumer_groups("--delete-offsets", *group, "--topic", "t:1")
    assert sorted(committed(cluster, "g")) == [0, 2, 3]
    await tools.consumer_groups("--delete", *group)
    assert committed(cluster, "g") == {}
