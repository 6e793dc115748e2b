"""Tokens of a real Keycloak, for the embedded broker and for real Kafka.

Keycloak takes half a minute to start on an idle machine: run these with ``-m keycloak``.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import SaslAuthenticationException
from aioproducer.testing.keycloak import Keycloak
from tests.broker.raw_clients.sasl import figures
from tests.conformance.keycloak_realm import SECRET
from tests.conformance.keycloak_realm import keycloak as keycloak

pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("jwt", reason="PyJWT is not installed")

pytestmark = [pytest.mark.keycloak, pytest.mark.timeout(600)]


def broker_configs(keycloak: Keycloak) -> dict[str, Any]:
    return {
        "listeners": "SASL_PLAINTEXT://:0",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keycloak.jwks_url,
        "sasl.oauthbearer.expected.issuer": keycloak.issuer,
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.sub.claim.name": "azp",
        "connection.failed.authentication.delay.ms": 1,
    }


def configs(cluster: EmbeddedCluster, keycloak: Keycloak, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": cluster.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_token_endpoint_url": keycloak.token_url,
        "sasl_oauthbearer_client_credentials_client_id": "producer",
        "sasl_oauthbearer_client_credentials_client_secret": SECRET,
        **more,
    }


async def test_sessions_of_several_tokens(keycloak: Keycloak) -> None:
    async with EmbeddedCluster(configs=broker_configs(keycloak)) as cluster:
        async with KafkaProducer(**configs(cluster, keycloak, transactional_id="x")) as producer:
            await producer.init_transactions()
            number = 0
            async with asyncio.timeout(120):
                while figures(cluster).get("successful-reauthentication-total", 0) < 3:
                    async with producer.transaction():
                        _ = await producer.send("t", b"%d" % number)
                    number += 1
                    await asyncio.sleep(0.05)
        batches = [batch for batch in cluster.log("t").batches() if not batch.is_control]
        assert [record.value for batch in batches for record in batch.records()] == [b"%d" % n for n in range(number)]


async def test_a_wrong_secret(keycloak: Keycloak) -> None:
    async with EmbeddedCluster(configs=broker_configs(keycloak)) as cluster:
        wrong = configs(cluster, keycloak, sasl_oauthbearer_client_credentials_client_secret="wrong")
        async with KafkaProducer(**wrong) as producer:
            with pytest.raises(
                SaslAuthenticationException, match="for client 'producer': HTTP status 401, unauthorized_client"
            ):
                await producer.send("t", b"value")
