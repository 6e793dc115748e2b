"""The realm of the tests with a real Keycloak, whose tokens live for some seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from aioproducer.testing.kafka.kafka_libs import KafkaUnavailable
from aioproducer.testing.keycloak import Keycloak, fetch_keycloak

SECRET = "planted"
LIFETIME = 6
REALM: dict[str, Any] = {
    "realm": "kafka",
    "enabled": True,
    "sslRequired": "none",
    "accessTokenLifespan": LIFETIME,
    "clients": [
        {
            "clientId": "producer",
            "secret": SECRET,
            "enabled": True,
            "serviceAccountsEnabled": True,
            "standardFlowEnabled": False,
            "protocolMappers": [
                {
                    "name": "audience",
                    "protocol": "openid-connect",
                    "protocolMapper": "oidc-audience-mapper",
                    "config": {"included.custom.audience": "kafka", "access.token.claim": "true"},
                }
            ],
        }
    ],
}


@pytest.fixture(scope="module")
def keycloak() -> Iterator[Keycloak]:
    try:
        fetch_keycloak()
    except KafkaUnavailable as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must run the tests against Keycloak: {missing}", pytrace=False)
        pytest.skip(f"no Keycloak to test against: {missing}")
    with Keycloak(REALM) as keycloak:
        yield keycloak
