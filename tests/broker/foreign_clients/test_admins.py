"""Admin clients that know nothing of this project, against the embedded broker."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.kafka.apache_kafka import KafkaFailed, KafkaTools

WINDOW = "producer.state.batches.to.retain"

pytestmark = pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)


class TestConfluent:
    @pytest.fixture
    def names(self) -> Any:
        return pytest.importorskip("confluent_kafka.admin", reason="confluent-kafka is not installed")

    @pytest.fixture
    def admin(self, cluster: EmbeddedCluster, names: Any) -> Any:
        return names.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    async def test_configs(self, cluster: EmbeddedCluster, admin: Any, names: Any) -> None:
        cluster.create_topic("t", configs={WINDOW: 20})
        await asyncio.to_thread(self.configs, admin, names)
        assert cluster.topic("t").configs == {"cleanup.policy": "delete,compact", "max.message.bytes": "5000"}
        assert cluster.log("t").config.producer_state_batches_to_retain == 7

    def configs(self, admin: Any, names: Any) -> None:
        from confluent_kafka import KafkaError, KafkaException

        def describe(kind: Any, name: str) -> dict[str, Any]:
            ((_, future),) = admin.describe_configs([names.ConfigResource(kind, name)]).items()
            entries: dict[str, Any] = future.result(10)
            return entries

        def alter(kind: Any, name: str, *changes: tuple[str, Any, str | None]) -> None:
            entries = [
                names.ConfigEntry(key, value, incremental_operation=operation) for key, operation, value in changes
            ]
            resource = names.ConfigResource(kind, name, incremental_configs=entries)
            ((_, future),) = admin.incremental_alter_configs([resource]).items()
            future.result(10)

        topic, broker, operation = names.ResourceType.TOPIC, names.ResourceType.BROKER, names.AlterConfigOpType
        window = describe(topic, "t")[WINDOW]
        assert (window.value, window.source) == ("20", names.ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
        assert {name: synonym.value for name, synonym in window.synonyms.items()} == {
            WINDOW: "20",
            f"log.{WINDOW}": "5",
        }
        alter(
            topic,
            "t",
            (WINDOW, operation.DELETE, None),
            ("max.message.bytes", operation.SET, "5000"),
            ("cleanup.policy", operation.APPEND, "compact"),
        )
        alter(broker, "0", (f"log.{WINDOW}", operation.SET, "7"))
        window = describe(topic, "t")[WINDOW]
        assert (window.value, window.source) == ("7", names.ConfigSource.DYNAMIC_BROKER_CONFIG.value)
        assert describe(broker, "1")[f"log.{WINDOW}"].value == "5"
        for kind, name, key, code in (
            (topic, "t", "no.such", KafkaError.INVALID_CONFIG),
            (topic, "not-there", WINDOW, KafkaError.UNKNOWN_TOPIC_OR_PART),
            (broker, "0", "num.partitions", KafkaError.INVALID_REQUEST),
        ):
            with pytest.raises(KafkaException) as refused:
                alter(kind, name, (key, operation.SET, "9"))
            assert refused.value.args[0].code() == code

    async def test_cluster_partitions_and_records(self, cluster: EmbeddedCluster, admin: Any, names: Any) -> None:
        cluster.create_topic("t", 2, 2)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for number in range(5):
                _ = await producer.send("t", b"%d" % number, partition=1)
        topic_partition = pytest.importorskip("confluent_kafka").TopicPartition
        described = await asyncio.to_thread(admin.describe_cluster().result, 10)
        assert described.cluster_id == cluster.cluster_id
        assert [node.id for node in described.nodes] == [0, 1]
        (future,) = admin.create_partitions([names.NewPartitions("t", 4)]).values()
        await asyncio.to_thread(future.result, 10)
        assert len(cluster.topic("t").partitions) == 4
        ((_, future),) = admin.delete_records([topic_partition("t", 1, 3)]).items()
        assert (await asyncio.to_thread(future.result, 10)).low_watermark == 3
        assert cluster.log("t", 1).log_start_offset == 3


class TestKafkaPython:
    @pytest.fixture
    def kafka(self) -> Any:
        return pytest.importorskip("kafka.admin", reason="kafka-python is not installed")

    async def test_configs(self, cluster: EmbeddedCluster, kafka: Any) -> None:
        cluster.create_topic("t")
        await asyncio.to_thread(self.configs, kafka, cluster.bootstrap_servers)
        assert cluster.topic("t").configs == {WINDOW: "20"}

    def configs(self, kafka: Any, servers: str) -> None:
        admin = kafka.KafkaAdminClient(bootstrap_servers=servers)
        try:
            topic = kafka.ConfigResource(kafka.ConfigResourceType.TOPIC, "t", {WINDOW: "20"})
            admin.alter_configs([topic])
            described = admin.describe_configs([kafka.ConfigResource(kafka.ConfigResourceType.TOPIC, "t")])
            assert "20" in str(described)
        finally:
            admin.close()


class TestAiokafka:
    async def test_configs(self, cluster: EmbeddedCluster) -> None:
        admin_module = pytest.importorskip("aiokafka.admin", reason="aiokafka is not installed")
        resource = pytest.importorskip("aiokafka.admin.config_resource")
        cluster.create_topic("t", configs={"max.message.bytes": 5000})
        admin = admin_module.AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        await admin.start()
        try:
            topic = resource.ConfigResource(resource.ConfigResourceType.TOPIC, "t", {WINDOW: "20"})
            (answer,) = await admin.alter_configs([topic])
            assert answer.resources == [(0, None, 2, "t")]
            assert cluster.topic("t").configs == {WINDOW: "20"}, "configs that are left out are reset"
            (answer,) = await admin.describe_configs([topic])
            ((code, _, _, name, entries),) = answer.resources
            assert (code, name, [entry[:2] for entry in entries]) == (0, "t", [(WINDOW, "20")])
        finally:
            await admin.close()


@pytest.mark.conformance
@pytest.mark.timeout(300)
class TestKafkaTools:
    @pytest.fixture
    def tools(self, cluster: EmbeddedCluster, java_tools: Callable[[EmbeddedCluster], KafkaTools]) -> KafkaTools:
        return java_tools(cluster)

    async def test_configs(self, cluster: EmbeddedCluster, tools: KafkaTools) -> None:
        cluster.create_topic("t")
        topic = "--entity-type", "topics", "--entity-name", "t"
        await tools.configs("--alter", *topic, "--add-config", f"{WINDOW}=20,cleanup.policy=[compact,delete]")
        assert cluster.topic("t").configs == {WINDOW: "20", "cleanup.policy": "compact,delete"}
        described = await tools.configs("--describe", *topic)
        assert re.search(rf"{WINDOW}=20 sensitive=false synonyms=\{{DYNAMIC_TOPIC_CONFIG:{WINDOW}=20, ", described)
        assert "retention.ms=604800000 sensitive=false" in await tools.configs("--describe", *topic, "--all")
        await tools.configs("--alter", *topic, "--delete-config", WINDOW)
        assert cluster.topic("t").configs == {"cleanup.policy": "compact,delete"}

        brokers = "--entity-type", "brokers"
        await tools.configs("--alter", *brokers, "--entity-default", "--add-config", f"log.{WINDOW}=9")
        await tools.configs("--alter", *brokers, "--entity-name", "1", "--add-config", f"log.{WINDOW}=8")
        described = await tools.configs("--describe", *brokers, "--entity-name", "1")
        assert f"DYNAMIC_BROKER_CONFIG:log.{WINDOW}=8, DYNAMIC_DEFAULT_BROKER_CONFIG:log.{WINDOW}=9" in described
        with pytest.raises(KafkaFailed, match=r"num\.partitions"):
            await tools.configs("--alter", *brokers, "--entity-default", "--add-config", "num.partitions=3")

    async def test_subscriptions_to_client_metrics(self, tools: KafkaTools) -> None:
        prefix, match = "org.apache.kafka.producer.", "client_software_name=aioproducer"
        await tools.client_metrics(
            "--alter", "--name", "m", "--metrics", prefix, "--interval", "60000", "--match", match
        )
        assert (await tools.client_metrics("--list")).split() == ["m"]
        described = await tools.client_metrics("--describe")
        assert all(text in described for text in (f"metrics={prefix}", "interval.ms=60000", f"match={match}"))
        await tools.client_metrics("--delete", "--name", "m")
        assert (await tools.client_metrics("--list")).split() == []

    async def test_quotas(self, cluster: EmbeddedCluster, tools: KafkaTools) -> None:
        quotas = cluster.client_quotas
        clients = "--entity-type", "clients", "--entity-name", "console"
        await tools.configs("--alter", *clients, "--add-config", "producer_byte_rate=1024,request_percentage=12.5")
        described = await tools.configs("--describe", *clients)
        assert re.search(r"client-id 'console' are .*producer_byte_rate=1024(\.0)?", described)
        await tools.configs("--alter", *clients, "--delete-config", "request_percentage")
        both = "--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name", "console"
        await tools.configs("--alter", *both, "--add-config", "consumer_byte_rate=2048,controller_mutation_rate=0.5")
        ips = "--entity-type", "ips", "--entity-name", "127.0.0.9"
        await tools.configs("--alter", *ips, "--add-config", "connection_creation_rate=100")
        assert "connection_creation_rate=100" in await tools.configs("--describe", *ips)
        assert quotas() == [
            ({"client-id": "console"}, {"producer_byte_rate": 1024}),
            ({"client-id": "console", "user": None}, {"consumer_byte_rate": 2048, "controller_mutation_rate": 0.5}),
            ({"ip": "127.0.0.9"}, {"connection_creation_rate": 100}),
        ]
        with pytest.raises(KafkaFailed, match="more than 0"):
            await tools.configs("--alter", *clients, "--add-config", "producer_byte_rate=-1")

    async def test_transactions(self, cluster: EmbeddedCluster, tools: KafkaTools) -> None:
        cluster.create_topic("t")
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                _ = await producer.send("t", b"value")
                (listed,) = await tools.transactions("list")
                assert (listed["TransactionalId"], listed["TransactionState"]) == ("x", "Ongoing")
                (described,) = await tools.transactions("describe", "--transactional-id", "x")
                assert (described["TopicPartitions"], described["ProducerEpoch"]) == ("t-0", "0")
                where = "--topic", "t", "--partition", "0"
                (active,) = await tools.transactions("describe-producers", *where)
                assert (active["ProducerId"], active["CurrentTransactionStartOffset"]) == (described["ProducerId"], "0")
            (listed,) = await tools.transactions("list")
            assert listed["TransactionState"] == "CompleteCommit"
