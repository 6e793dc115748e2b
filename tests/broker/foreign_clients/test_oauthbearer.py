"""Clients that know nothing of this project authenticate to the embedded broker with tokens."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.security.jaas import OAUTHBEARER_LOGIN_MODULE
from aioproducer.testing.kafka.apache_kafka import KafkaTools, KafkaUnavailable, fetch_kafka
from tests.broker.raw_clients.oauth import oauth_cluster
from tests.broker.raw_clients.sasl import figures
from tests.support.security.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider, identity_provider

pytest.importorskip("httpx", reason="httpx is not installed")

COUNT = 100
VALUES = [b"value %d" % index for index in range(COUNT)]


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


@pytest.fixture
async def cluster(provider: IdentityProvider) -> AsyncIterator[EmbeddedCluster]:
    async with oauth_cluster(provider, nodes=2) as cluster:
        yield cluster


def stored(cluster: EmbeddedCluster) -> list[bytes | None]:
    return [record.value for record in cluster.log("t").records()]


def refused(cluster: EmbeddedCluster) -> int:
    return figures(cluster).get("failed-authentication-total", 0)


WRONG = {"iss": "http://mallory"}


class TestAiokafka:
    def configs(self, cluster: EmbeddedCluster, token: str) -> dict[str, Any]:
        pytest.importorskip("aiokafka", reason="aiokafka is not installed")
        from aiokafka.abc import AbstractTokenProvider

        class Provider(AbstractTokenProvider):  # type: ignore[misc]
            async def token(self) -> str:
                return token

        return {
            "bootstrap_servers": cluster.bootstrap_servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": Provider(),
        }

    async def test_produce_and_consume(self, cluster: EmbeddedCluster, provider: IdentityProvider) -> None:
        configs = self.configs(cluster, provider.token())
        import aiokafka

        async with aiokafka.AIOKafkaProducer(**configs) as producer:
            await asyncio.gather(*[await producer.send("t", value, partition=0) for value in VALUES])
        assert stored(cluster) == VALUES
        async with aiokafka.AIOKafkaConsumer("t", auto_offset_reset="earliest", group_id="g", **configs) as consumer:
            assert [(await consumer.getone()).value for _ in VALUES] == VALUES

    async def test_is_not_believed(self, cluster: EmbeddedCluster, provider: IdentityProvider) -> None:
        configs = self.configs(cluster, provider.token(**WRONG))
        import aiokafka

        producer = aiokafka.AIOKafkaProducer(**configs)
        with pytest.raises(aiokafka.errors.KafkaError):
            await producer.start()
        await producer.stop()
        assert refused(cluster) >= 1


class TestConfluent:
    def configs(self, cluster: EmbeddedCluster, token: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": cluster.bootstrap_servers,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda config: (token, time.time() + 1000, "", {"traceId": "7"}),
        }

    async def test_produce(self, cluster: EmbeddedCluster, provider: IdentityProvider) -> None:
        confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

        def produce() -> int:
            producer = confluent.Producer(self.configs(cluster, provider.token()))
            for value in VALUES:
                producer.produce("t", value, partition=0)
            left: int = producer.flush(30)
            return left

        assert await asyncio.to_thread(produce) == 0
        assert stored(cluster) == VALUES

    async def test_is_not_believed(self, cluster: EmbeddedCluster, provider: IdentityProvider) -> None:
        confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
        errors: list[Any] = []

        def fail() -> None:
            configs = {**self.configs(cluster, provider.token(**WRONG)), "error_cb": errors.append}
            producer = confluent.Producer(configs)
            producer.poll(0)
            with pytest.raises(confluent.KafkaException):
                producer.list_topics(timeout=1)
            producer.poll(0)

        await asyncio.to_thread(fail)
        assert confluent.KafkaError._AUTHENTICATION in {error.code() for error in errors}


class TestKafkaPython:
    async def test_produce(self, cluster: EmbeddedCluster, provider: IdentityProvider) -> None:
        kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
        try:
            from kafka.net.sasl.oauth import AbstractTokenProvider
        except ImportError:  # before kafka-python 3
            from kafka.sasl.oauth import AbstractTokenProvider

        token = provider.token()

        class Provider(AbstractTokenProvider):  # type: ignore[misc]
            def token(self) -> str:
                return token

        def produce() -> None:
            producer = kafka.KafkaProducer(
                bootstrap_servers=cluster.bootstrap_servers,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="OAUTHBEARER",
                sasl_oauth_token_provider=Provider(),
            )
            deliveries = [producer.send("t", value, partition=0) for value in VALUES]
            producer.flush(30)
            assert [delivery.get(0).offset for delivery in deliveries] == list(range(COUNT))
            producer.close()

        await asyncio.to_thread(produce)
        assert stored(cluster) == VALUES


@pytest.fixture(scope="module")
def libs() -> Any:
    try:
        return fetch_kafka("4.3.1")
    except KafkaUnavailable as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"Kafka's own clients are NOT tested: {missing}")


@pytest.mark.conformance
@pytest.mark.timeout(300)
class TestKafkaTools:
    async def test_console_producer(
        self, cluster: EmbeddedCluster, provider: IdentityProvider, libs: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.token_url}"
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", allowed)
        configs = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
            ),
            "sasl.oauthbearer.token.endpoint.url": provider.token_url,
            "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
            "sasl.jaas.config": f"{OAUTHBEARER_LOGIN_MODULE} required;",
        }
        tools = KafkaTools(libs, cluster.bootstrap_servers, configs=configs)
        await tools.console_producer("t", [(None, value.decode()) for value in VALUES])
        assert stored(cluster) == VALUES
        read = await tools.console_consumer("t", partition=0, max_messages=COUNT)
        assert [record.value for record in read] == VALUES
