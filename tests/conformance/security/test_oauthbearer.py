"""The producer authenticates to real Kafka with tokens that real Kafka verifies."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from aioproducer import KafkaProducer, OAuthBearerToken
from aioproducer.errors import SaslAuthenticationException
from aioproducer.reader import PartitionReader
from aioproducer.security.jaas import OAUTHBEARER_LOGIN_MODULE
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.pytest_kafka import running_kafka
from tests.support.security.identity_provider import (
    AUDIENCE,
    ISSUER,
    KEY,
    IdentityProvider,
    SigningKey,
    identity_provider,
)

pytest.importorskip("httpx", reason="httpx is not installed")


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """Two listeners: one for signed tokens, and one for any."""
    file = tmp_path_factory.mktemp("keys") / "jwks.json"
    file.write_text(json.dumps({"keys": [KEY.jwk]}))
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    configs: dict[str, Any] = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.signed.oauthbearer.sasl.jaas.config": f"{OAUTHBEARER_LOGIN_MODULE} required;",
        "listener.name.signed.oauthbearer.sasl.server.callback.handler.class": handler,
        "listener.name.signed.sasl.oauthbearer.jwks.endpoint.url": file.as_uri(),
        "listener.name.signed.sasl.oauthbearer.expected.issuer": ISSUER,
        "listener.name.signed.sasl.oauthbearer.expected.audience": AUDIENCE,
        "listener.name.unsigned.oauthbearer.sasl.jaas.config": (
            f'{OAUTHBEARER_LOGIN_MODULE} required unsecuredLoginStringClaim_sub="broker";'
        ),
    }
    listeners = {"SIGNED": "SASL_PLAINTEXT", "UNSIGNED": "SASL_PLAINTEXT"}
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={file.as_uri()}"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_TOOL_OPTIONS", allowed)
        with running_kafka("4.3.1", configs=configs, listeners=listeners) as kafka:
            yield kafka


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


def configs(kafka: ApacheKafka, provider: IdentityProvider, **more: Any) -> dict[str, Any]:
    return {"bootstrap_servers": kafka.bootstrap_servers_of("SIGNED"), **provider.configs(**more)}


async def stored(kafka: ApacheKafka, topic: str) -> list[bytes | None]:
    async with PartitionReader(kafka.bootstrap_servers, topic, 0) as reader:
        return [record.value async for record in reader.read_to_end()]


async def test_produce_and_transact(kafka: ApacheKafka, provider: IdentityProvider) -> None:
    more = {"transactional_id": "by-token", "sasl_oauthbearer_scope": "produce"}
    async with KafkaProducer(**configs(kafka, provider, **more)) as producer:
        await producer.init_transactions()
        for number in range(10):
            async with producer.transaction():
                _ = await producer.send("by-token", b"%d" % number)
    assert await stored(kafka, "by-token") == [b"%d" % number for number in range(10)]


async def test_tokens_are_renewed_under_load(kafka: ApacheKafka, provider: IdentityProvider) -> None:
    """For longer than three tokens; Kafka's sessions end with them."""
    provider.lifetime = 4
    quick = {"sasl_login_refresh_min_period_seconds": 0, "sasl_login_refresh_buffer_seconds": 0}
    async with KafkaProducer(**configs(kafka, provider, linger_ms=0, **quick)) as producer:
        _ = await producer.send("renewed", b"0")
        deliveries, number = [], 1
        while len(provider.requests) < 4:
            deliveries.append(await producer.enqueue("renewed", b"%d" % number))
            number += 1
            await asyncio.sleep(0.002)
        await asyncio.gather(*deliveries)
        measured = producer.metrics()
    assert await stored(kafka, "renewed") == [b"%d" % sent for sent in range(number)]
    assert measured["successful-reauthentication-total"] >= 2


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"iss": "http://mallory"}, "issuer 'http://mallory', audience 'kafka', expires 20"),
        ({"aud": "other"}, "audience 'other'"),
        ({"exp": time.time() - 1000, "iat": time.time() - 2000}, "expired 20"),
    ],
)
async def test_a_refused_token(kafka: ApacheKafka, provider: IdentityProvider, more: dict[str, Any], told: str) -> None:
    provider.more = more
    async with KafkaProducer(**configs(kafka, provider)) as producer:
        with pytest.raises(SaslAuthenticationException, match=told) as refused:
            await producer.send("never", b"")
        assert 'by OAUTHBEARER: {"status":"invalid_token"}' in str(refused.value)


async def test_a_token_that_somebody_else_has_signed(kafka: ApacheKafka, provider: IdentityProvider) -> None:
    provider.keys = [SigningKey(KEY.kid)]
    async with KafkaProducer(**configs(kafka, provider)) as producer:
        with pytest.raises(SaslAuthenticationException, match="invalid_token"):
            await producer.send("never", b"")


async def test_unsecured_tokens_with_extensions(kafka: ApacheKafka) -> None:
    jaas = f'{OAUTHBEARER_LOGIN_MODULE} required unsecuredLoginStringClaim_sub="alice" unsecuredLoginExtension_id="7";'
    plain: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap_servers_of("UNSIGNED"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
    }
    async with KafkaProducer(**plain, sasl_jaas_config=jaas) as producer:
        _ = await producer.send("unsecured", b"value")


async def test_a_provider_of_the_users(kafka: ApacheKafka, provider: IdentityProvider) -> None:
    async def token() -> OAuthBearerToken:
        return OAuthBearerToken(provider.token(), time.time() + 60)

    plain: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap_servers_of("SIGNED"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
    }
    async with KafkaProducer(**plain, sasl_oauth_token_provider=token) as producer:
        _ = await producer.send("provided", b"value")
    async with KafkaProducer(**plain, sasl_oauth_token_provider=provider.token) as producer:
        _ = await producer.send("provided", b"value")
