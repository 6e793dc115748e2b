"""A real registry that wants tokens of a real Keycloak, or client credentials by basic authentication.

Keycloak takes half a minute to start on an idle machine: run these with ``-m keycloak``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from aioproducer.schema_registry import (
    AvroSerializer,
    SchemaRegistryAuthenticationException,
    SchemaRegistryClient,
)
from aioproducer.testing.apicurio import Apicurio, running_apicurio
from aioproducer.testing.keycloak import Keycloak
from tests.conformance.keycloak_realm import LIFETIME, REALM, SECRET
from tests.conformance.keycloak_realm import keycloak as keycloak

pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("fastavro", reason="fastavro is not installed")

pytestmark = [pytest.mark.keycloak, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def apicurio(keycloak: Keycloak) -> Iterator[Apicurio]:
    properties = {
        "registry.auth.enabled": "true",
        "registry.auth.basic-auth-client-credentials.enabled": "true",
        "registry.keycloak.url": keycloak.url,
        "registry.keycloak.realm": str(REALM["realm"]),
        "quarkus.oidc.client-id": "producer",
    }
    with running_apicurio(properties) as apicurio:
        yield apicurio


def client(apicurio: Apicurio, **credentials: Any) -> SchemaRegistryClient:
    return SchemaRegistryClient(apicurio.url, max_retries=0, **credentials)


def of_keycloak(keycloak: Keycloak, secret: str = SECRET) -> dict[str, Any]:
    return {
        "bearer_auth_issuer_endpoint_url": keycloak.token_url,
        "bearer_auth_client_id": "producer",
        "bearer_auth_client_secret": secret,
    }


async def test_tokens_of_keycloak_beyond_the_life_of_one(keycloak: Keycloak, apicurio: Apicurio) -> None:
    registry = client(apicurio, **of_keycloak(keycloak))
    for number in range(3):
        await AvroSerializer(registry, '"string"').prepare(f"t{number}")
        await asyncio.sleep(LIFETIME / 2 + 1)
    assert {"t0-value", "t1-value", "t2-value"} <= set(await registry.get_subjects())


async def test_client_credentials_by_basic_authentication(apicurio: Apicurio) -> None:
    await AvroSerializer(client(apicurio, basic_auth_user_info=f"producer:{SECRET}"), '"string"').prepare("basic")


@pytest.mark.parametrize("credentials", [{}, {"basic_auth_user_info": f"producer:not-{SECRET}"}, {"token": "a.b.c"}])
async def test_wrong_credentials(
    apicurio: Apicurio, credentials: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    if "token" in credentials:
        credentials = {"bearer_auth_token": f"{SECRET}.{SECRET}.{SECRET}"}
    with pytest.raises(SchemaRegistryAuthenticationException) as failed:
        await AvroSerializer(client(apicurio, **credentials), '"string"').prepare("t")
    assert failed.value.status in (401, 403)
    assert SECRET not in f"{failed.value!r} {caplog.text}"


async def test_a_wrong_secret_at_keycloak(keycloak: Keycloak, apicurio: Apicurio) -> None:
    with pytest.raises(SchemaRegistryAuthenticationException, match="gave no token for client 'producer'"):
        await client(apicurio, **of_keycloak(keycloak, "wrong")).get_subjects()
