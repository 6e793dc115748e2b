"""Clients independent of this project authenticate to the embedded broker, with right and wrong credentials."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.kafka.apache_kafka import KafkaTools, KafkaUnavailable, fetch_kafka
from tests.broker.raw_clients.sasl import ESCAPED, MECHANISMS, PASSWORD, alice, figures, java_configs, sasl_cluster
from tests.support.kafka_releases import RELEASES

pytest.importorskip("scramp", reason="scramp is not installed")

COUNT = 100
VALUES = [b"value %d" % index for index in range(COUNT)]


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with sasl_cluster(nodes=2) as cluster:
        yield cluster


def stored(cluster: EmbeddedCluster) -> list[bytes | None]:
    return [record.value for record in cluster.log("t").records()]


@pytest.mark.parametrize("mechanism", MECHANISMS)
class TestAiokafka:
    async def test_produce_and_consume(self, cluster: EmbeddedCluster, mechanism: str) -> None:
        aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
        configs = alice(cluster, mechanism)
        async with aiokafka.AIOKafkaProducer(**configs) as producer:
            await asyncio.gather(*[await producer.send("t", value, partition=0) for value in VALUES])
        assert stored(cluster) == VALUES
        async with aiokafka.AIOKafkaConsumer("t", auto_offset_reset="earliest", group_id="g", **configs) as consumer:
            assert [(await consumer.getone()).value for _ in VALUES] == VALUES

    async def test_is_not_believed(self, cluster: EmbeddedCluster, mechanism: str) -> None:
        aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
        producer = aiokafka.AIOKafkaProducer(**alice(cluster, mechanism, sasl_plain_password="wrong"))
        with pytest.raises(aiokafka.errors.KafkaError):
            await producer.start()
        await producer.stop()
        assert figures(cluster)["failed-authentication-total"] >= 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
class TestConfluent:
    @pytest.fixture
    def configs(self, cluster: EmbeddedCluster, mechanism: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": cluster.bootstrap_servers,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": PASSWORD,
        }

    async def test_produce_and_consume(self, cluster: EmbeddedCluster, configs: dict[str, Any]) -> None:
        confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
        assert await asyncio.to_thread(self.produce, confluent, configs) == 0
        assert stored(cluster) == VALUES
        assert await asyncio.to_thread(self.consume, confluent, configs) == VALUES

    async def test_is_not_believed(self, cluster: EmbeddedCluster, configs: dict[str, Any]) -> None:
        confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
        errors: list[Any] = []
        await asyncio.to_thread(self.fail, confluent, {**configs, "sasl.password": "wrong", "error_cb": errors.append})
        assert confluent.KafkaError._AUTHENTICATION in {error.code() for error in errors}

    def produce(self, confluent: Any, configs: dict[str, Any]) -> int:
        producer = confluent.Producer(configs)
        for value in VALUES:
            producer.produce("t", value, partition=0)
        left: int = producer.flush(30)
        return left

    def consume(self, confluent: Any, configs: dict[str, Any]) -> list[bytes]:
        consumer = confluent.Consumer({**configs, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        messages = consumer.consume(COUNT, 30)
        consumer.close()
        return [message.value() for message in messages]

    def fail(self, confluent: Any, configs: dict[str, Any]) -> None:
        producer = confluent.Producer(configs)
        with pytest.raises(confluent.KafkaException):
            producer.list_topics(timeout=1)
        producer.poll(0)


@pytest.mark.parametrize("mechanism", MECHANISMS)
class TestKafkaPython:
    async def test_produce(self, cluster: EmbeddedCluster, mechanism: str) -> None:
        kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
        await asyncio.to_thread(self.produce, kafka, alice(cluster, mechanism))
        assert stored(cluster) == VALUES

    def produce(self, kafka: Any, configs: dict[str, Any]) -> None:
        producer = kafka.KafkaProducer(**configs)
        deliveries = [producer.send("t", value, partition=0) for value in VALUES]
        producer.flush(30)
        assert [delivery.get(0).offset for delivery in deliveries] == list(range(COUNT))
        producer.close()


async def test_librdkafka_says_it_again_before_its_session_ends() -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

    def produce(servers: str, done: asyncio.Event) -> None:
        producer = confluent.Producer(
            {
                "bootstrap.servers": servers,
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": "alice",
                "sasl.password": PASSWORD,
                "linger.ms": 0,
            }
        )
        while not done.is_set():
            producer.produce("t", b"")
            producer.flush(30)

    async with sasl_cluster(connections__max__reauth__ms=1500) as cluster:
        done = asyncio.Event()
        producing = asyncio.create_task(asyncio.to_thread(produce, cluster.bootstrap_servers, done))
        async with asyncio.timeout(30):
            while "successful-reauthentication-total" not in figures(cluster):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.05)
        done.set()
        await producing
        assert "expired-connections-killed-count" not in figures(cluster)


@pytest.fixture(scope="module", params=RELEASES)
def libs(request: pytest.FixtureRequest) -> Any:
    try:
        return fetch_kafka(request.param)
    except KafkaUnavailable as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"Kafka's own clients are NOT tested: {missing}")


@pytest.mark.conformance
@pytest.mark.timeout(300)
class TestKafkaTools:
    @pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
    async def test_console_producer_and_consumer(self, cluster: EmbeddedCluster, libs: Any, mechanism: str) -> None:
        tools = KafkaTools(libs, cluster.bootstrap_servers, configs=java_configs(mechanism, "alice", ESCAPED))
        await tools.console_producer("t", [(None, value.decode()) for value in VALUES])
        assert stored(cluster) == VALUES
        read = await tools.console_consumer("t", partition=0, max_messages=COUNT)
        assert [record.value for record in read] == VALUES

    async def test_users_made_by_kafka_configs(self, cluster: EmbeddedCluster, libs: Any) -> None:
        tools = KafkaTools(libs, cluster.bootstrap_servers, configs=java_configs("PLAIN", "alice", ESCAPED))
        user = ("--entity-type", "users", "--entity-name", "carol")
        configs = "kafka.admin.ConfigCommand"
        server = ("--bootstrap-server", cluster.bootstrap_servers)
        made = ("--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=carols]")
        await tools.run(configs, *server, *user, *made, config_option="--command-config", timeout=60)
        described = await tools.run(configs, *server, *user, "--describe", config_option="--command-config", timeout=60)
        assert b"SCRAM-SHA-256=iterations=8192" in described.stdout
        hers = KafkaTools(libs, cluster.bootstrap_servers, configs=java_configs("SCRAM-SHA-256", "carol", "carols"))
        await hers.create_topic("carols")
        assert [topic.name for topic in cluster.topics] == ["carols"]
