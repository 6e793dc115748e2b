"""Producers that authenticate with tokens of an identity provider."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from aioproducer import KafkaProducer, OAuthBearerToken
from aioproducer.admin import KafkaAdmin
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import SaslAuthenticationException, TimeoutException
from aioproducer.security.jaas import OAUTHBEARER_LOGIN_MODULE
from tests.broker.raw_clients.oauth import oauth_cluster
from tests.broker.raw_clients.sasl import figures
from tests.support.security.identity_provider import CLIENT_SECRET, IdentityProvider, SigningKey, identity_provider

pytest.importorskip("httpx", reason="httpx is not installed")

QUICK = {"sasl_login_refresh_min_period_seconds": 0, "sasl_login_refresh_buffer_seconds": 0}


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


@pytest.fixture
async def cluster(provider: IdentityProvider) -> AsyncIterator[EmbeddedCluster]:
    async with oauth_cluster(provider, nodes=2) as cluster:
        yield cluster


def configs(cluster: EmbeddedCluster, provider: IdentityProvider, **more: Any) -> dict[str, Any]:
    return {"bootstrap_servers": cluster.bootstrap_servers, **provider.configs(**more)}


async def test_produce_and_transact(cluster: EmbeddedCluster, provider: IdentityProvider) -> None:
    async with KafkaProducer(**configs(cluster, provider, transactional_id="x")) as producer:
        await producer.init_transactions()
        for number in range(10):
            async with producer.transaction():
                _ = await producer.send("t", b"%d" % number)
    stored = [
        record.value for batch in cluster.log("t").batches() if not batch.is_control for record in batch.records()
    ]
    assert stored == [b"%d" % number for number in range(10)]
    assert len(provider.requests) == 1


async def test_by_a_properties_file_of_kafkas(cluster: EmbeddedCluster, provider: IdentityProvider) -> None:
    properties = f"""
        bootstrap.servers={cluster.bootstrap_servers}
        security.protocol=SASL_PLAINTEXT
        sasl.mechanism=OAUTHBEARER
        sasl.oauthbearer.token.endpoint.url={provider.token_url}
        sasl.oauthbearer.jwt.retriever.class=org.apache.kafka.common.security.oauthbearer.ClientCredentialsJwtRetriever
        sasl.jaas.config={OAUTHBEARER_LOGIN_MODULE} required \\
            clientId="alice" \\
            clientSecret="{CLIENT_SECRET}" \\
            scope="produce" \\
            extension_traceId="7";
    """
    async with KafkaProducer.from_config(properties) as producer:
        _ = await producer.send("t", b"value")
    assert provider.requests[0]["scope"] == "produce"


async def test_the_admin_client_too(cluster: EmbeddedCluster, provider: IdentityProvider) -> None:
    async with KafkaAdmin(**configs(cluster, provider)) as admin:
        assert list(await admin.list_topics()) == []


class TestRefused:
    async def test_wrong_credentials(
        self, cluster: EmbeddedCluster, provider: IdentityProvider, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        wrong = configs(cluster, provider, sasl_oauthbearer_client_credentials_client_secret="planted wrong")
        async with KafkaProducer(**wrong) as producer:
            with pytest.raises(
                SaslAuthenticationException, match="gave no token for client 'alice': HTTP status 401"
            ) as refused:
                await producer.send("t", b"value")
        shown = "".join(traceback.format_exception(refused.value)) + repr(vars(producer)) + repr(producer.config)
        assert "planted" not in shown + caplog.text

    @pytest.mark.parametrize(
        ("more", "told", "logged"),
        [
            ({"iss": "http://mallory"}, "issuer 'http://mallory', audience 'kafka', expires 20", "its issuer is not"),
            ({"aud": "other"}, "audience 'other'", "its audience is not"),
            ({"exp": time.time() - 1000}, "expired 20", "it expired"),
            ({"sub": None}, "did not accept the token \\(issuer", "it has no claim sub"),
        ],
    )
    async def test_a_token_that_the_broker_does_not_accept(
        self,
        cluster: EmbeddedCluster,
        provider: IdentityProvider,
        caplog: pytest.LogCaptureFixture,
        more: dict[str, Any],
        told: str,
        logged: str,
    ) -> None:
        token = provider.token(**more)

        async def given() -> OAuthBearerToken:
            return OAuthBearerToken(token, time.time() + 1000)

        plain: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
        async with KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, sasl_oauth_token_provider=given, **plain
        ) as producer:
            with pytest.raises(SaslAuthenticationException, match=told) as refused:
                await producer.send("t", b"value")
            assert '{"status":"invalid_token"}' in str(refused.value)
        shown = "".join(traceback.format_exception(refused.value)) + repr(vars(producer)) + caplog.text
        assert token not in shown
        assert token.rpartition(".")[2] not in shown
        assert f"its authentication by OAUTHBEARER failed: {logged}" in caplog.text

    async def test_a_key_that_the_broker_does_not_know(
        self, cluster: EmbeddedCluster, provider: IdentityProvider
    ) -> None:
        provider.keys = [SigningKey("forged")]
        provider.jwks = lambda: (503, b"")  # type: ignore[method-assign]
        async with KafkaProducer(**configs(cluster, provider)) as producer:
            with pytest.raises(SaslAuthenticationException, match="invalid_token"):
                await producer.send("t", b"value")


async def test_a_provider_that_is_down_and_comes_back(cluster: EmbeddedCluster, provider: IdentityProvider) -> None:
    provider.failing = lambda: (503, b"")
    async with KafkaProducer(**configs(cluster, provider, max_block_ms=400)) as producer:
        with pytest.raises(TimeoutException, match=r"the identity provider http://127\.0\.0\.1.*HTTP status 503"):
            await producer.send("t", b"value")
        assert len(provider.requests) < 10
        provider.failing = None
        async with asyncio.timeout(30):
            while True:
                try:
                    await producer.send("t", b"value")
                    break
                except TimeoutException:
                    pass


async def test_tokens_are_renewed_under_load(provider: IdentityProvider) -> None:
    """Sessions end with their tokens; no record is lost or out of order. net/security/test_oauthbearer.py times it."""
    provider.lifetime = 3
    async with oauth_cluster(provider, sasl__oauthbearer__clock__skew__seconds=0) as cluster:
        cluster.create_topic("t")
        async with KafkaProducer(**configs(cluster, provider, linger_ms=0, **QUICK)) as producer:
            deliveries, number = [], 0
            async with asyncio.timeout(50):
                while figures(cluster).get("successful-reauthentication-total", 0) < 2 or len(provider.requests) < 3:
                    for _ in range(20):
                        deliveries.append(await producer.enqueue("t", b"%d" % number))
                        number += 1
                        await asyncio.sleep(0.002)
            await asyncio.gather(*deliveries)
    assert [record.value for record in cluster.log("t").records()] == [b"%d" % sent for sent in range(number)]


async def test_a_provider_that_is_down_while_the_token_is_valid(
    provider: IdentityProvider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.lifetime = 6
    async with oauth_cluster(provider) as cluster:
        more = {"sasl_login_refresh_window_factor": 0.5, "sasl_login_refresh_window_jitter": 0, **QUICK}
        async with KafkaProducer(**configs(cluster, provider, **more)) as producer:
            _ = await producer.send("t", b"0")
            provider.failing = lambda: (503, b"")
            async with asyncio.timeout(30):
                number = 1
                while "the token could not be renewed" not in caplog.text:
                    _ = await producer.send("t", b"%d" % number)
                    number += 1
                    await asyncio.sleep(0.01)
            provider.failing = None
            async with asyncio.timeout(30):
                while provider.requests.count({"grant_type": "client_credentials"}) < 4:
                    _ = await producer.send("t", b"%d" % number)
                    number += 1
                    await asyncio.sleep(0.01)
            assert [record.value for record in cluster.log("t").records()] == [b"%d" % sent for sent in range(number)]


async def test_unsecured_tokens(provider: IdentityProvider) -> None:
    jaas = f'{OAUTHBEARER_LOGIN_MODULE} required unsecuredLoginStringClaim_sub="alice";'
    own = {
        "listeners": "SASL_PLAINTEXT://:0",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": jaas,
    }
    async with EmbeddedCluster(configs=own) as cluster:
        async with KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_jaas_config=jaas,
        ) as producer:
            _ = await producer.send("t", b"value")
        assert figures(cluster)["successful-authentication-total"] >= 1
