"""The partition reader, the admin client and the demo against real Kafka; its own tools are the other side."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys

import pytest

from aioproducer.admin import ClientQuotaEntity, EntityName, KafkaAdmin, NewTopic
from aioproducer.errors import (
    InvalidConfigurationException,
    InvalidReplicationFactorException,
    InvalidRequestException,
    InvalidTopicException,
    OffsetOutOfRangeException,
    TopicExistsException,
    UnknownTopicOrPartitionException,
)
from aioproducer.reader import PartitionReader
from aioproducer.testing.kafka.apache_kafka import ApacheKafka

from .topics import create_topic


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_reads_what_kafka_s_producer_wrote(kafka: ApacheKafka, codec: str) -> None:
    topic = f"read-{codec}"
    await create_topic(kafka, topic, partitions=1)
    sent = [(None if number % 3 == 0 else f"k{number}", f"value {number} é") for number in range(500)]
    await kafka.tools.console_producer(topic, [*sent, ("tombstone", None)], configs={"compression.type": codec})
    async with PartitionReader(kafka.bootstrap_servers, topic, 0, max_partition_fetch_bytes=4000) as reader:
        records = [record async for record in reader.read_to_end()]
        assert (await reader.beginning_offset(), await reader.end_offset()) == (0, 501)
        assert await reader.offset_for_time(records[-1].timestamp_ms + 1) is None
    expected = [(None if key is None else key.encode(), value.encode()) for key, value in sent]
    assert [(record.key, record.value) for record in records] == [*expected, (b"tombstone", None)]
    assert [record.offset for record in records] == list(range(501))


async def test_markers_of_transactions_are_passed(kafka_431: ApacheKafka) -> None:
    await create_topic(kafka_431, "transactions", partitions=1)
    configs = {"transactional.id": "x"}
    await kafka_431.tools.producer_performance("transactions", num_records=1000, record_size=10, configs=configs)
    async with PartitionReader(kafka_431.bootstrap_servers, "transactions", 0) as reader:
        records = [record async for record in reader.read_to_end()]
        assert len(records) == 1000
        assert reader.position == await reader.end_offset() > 1000


async def test_offsets_that_are_not_there(kafka: ApacheKafka) -> None:
    await create_topic(kafka, "short", partitions=1)
    async with PartitionReader(kafka.bootstrap_servers, "short", 0, 5) as reader:
        with pytest.raises(OffsetOutOfRangeException, match="begins at 0 and ends at 0"):
            await anext(aiter(reader))
    async with PartitionReader(kafka.bootstrap_servers, "nosuch", 0, default_api_timeout_ms=300) as reader:
        with pytest.raises(UnknownTopicOrPartitionException, match="nosuch"):
            await reader.end_offset()
    assert "nosuch" not in await kafka.tools.list_topics()


async def test_the_cluster_is_described(kafka: ApacheKafka) -> None:
    tool = "org.apache.kafka.tools.ClusterTool"
    said = (await kafka.tools.run(tool, "cluster-id", "--bootstrap-server", kafka.bootstrap_servers)).stdout
    async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        described = await admin.describe_cluster()
    assert said.decode().strip() == f"Cluster ID: {described.cluster_id}"
    (node,) = described.nodes
    assert f"{node.host}:{node.port}" == kafka.bootstrap_servers
    assert described.controller == node


async def test_topics(kafka: ApacheKafka) -> None:
    async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        await admin.create_topic(NewTopic("admin-made", 3, 1, {"retention.ms": "7200000"}))
        made = await kafka.tools.describe_topic("admin-made")
        assert made.configs["retention.ms"] == "7200000"
        described = await admin.describe_topic("admin-made")
        assert len(described.partitions) == len(made.partitions) == 3
        assert (await admin.list_topics())["admin-made"] == described
        wrong = [
            NewTopic("admin-made"),
            NewTopic("admin-many", replication_factor=7),
            NewTopic("admin-odd", configs={"nosuch": "1"}),
            NewTopic("no/name"),
        ]
        results = await admin.create_topics([*wrong, NewTopic("admin-more")])
        assert {name: type(error) for name, error in results.items()} == {
            "admin-made": TopicExistsException,
            "admin-many": InvalidReplicationFactorException,
            "admin-odd": InvalidConfigurationException,
            "no/name": InvalidTopicException,
            "admin-more": type(None),
        }
        assert all(name in str(error) or name == "admin-many" for name, error in results.items() if error is not None)
        deleted = await admin.delete_topics(["admin-made", "nosuch", "admin-more"])
        assert deleted["admin-made"] is deleted["admin-more"] is None
        with pytest.raises(UnknownTopicOrPartitionException, match="'nosuch'"):
            await admin.delete_topic("nosuch")
    assert not {"admin-made", "admin-more"} & set(await kafka.tools.list_topics())


async def test_quotas(kafka: ApacheKafka) -> None:
    batch, address = ClientQuotaEntity(client_id="admin-batch"), ClientQuotaEntity(ip="127.0.0.9")
    quotas = {batch: {"producer_byte_rate": 20_000.0}, address: {"connection_creation_rate": 100.0}}
    async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        wrong = ClientQuotaEntity(client_id="admin-wrong")
        results = await admin.alter_all_client_quotas({**quotas, wrong: {"nosuch": 1.0}})
        assert {entity: type(error) for entity, error in results.items()} == {
            batch: type(None),
            address: type(None),
            wrong: InvalidRequestException,
        }
        quotas_found: dict[ClientQuotaEntity, dict[str, float]] = {}
        async with asyncio.timeout(30):  # the broker hears of them from its controller
            while len(quotas_found) < 2:
                quotas_found = await admin.describe_client_quotas(client_id="admin-batch")
                quotas_found |= await admin.describe_client_quotas(ip=EntityName.ANY)
        assert quotas_found == quotas
        described = await kafka.tools.configs("--describe", "--entity-type", "clients", "--entity-name", "admin-batch")
        assert "producer_byte_rate=20000" in described
        await admin.alter_all_client_quotas({entity: dict.fromkeys(quotas[entity]) for entity in quotas})
        async with asyncio.timeout(30):
            while quotas.keys() & (await admin.describe_client_quotas()).keys():  # other tests have quotas of their own
                pass


async def test_the_demo(kafka: ApacheKafka) -> None:
    command = [sys.executable, "-m", "aioproducer", "demo", "--bootstrap-server", kafka.bootstrap_servers]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = r"Every record arrived once and in order: 6,099 records with 2,049 keys in 6 partitions"
    assert re.search(expected, done.stdout)
