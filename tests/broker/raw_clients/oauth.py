"""Clusters whose clients authenticate with tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aioproducer.broker import EmbeddedCluster
from tests.support.security.identity_provider import AUDIENCE, ISSUER, IdentityProvider


@asynccontextmanager
async def oauth_cluster(provider: IdentityProvider, nodes: int = 1, **configs: Any) -> AsyncIterator[EmbeddedCluster]:
    """It knows the provider's keys."""
    given = {
        "listeners": "SASL_PLAINTEXT://:0",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": provider.jwks_url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "connection.failed.authentication.delay.ms": 1,
        **{name.replace("__", "."): value for name, value in configs.items()},
    }
    async with EmbeddedCluster(nodes, configs=given) as cluster:
        yield cluster
