"""Clusters with TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aioproducer.broker import EmbeddedCluster
from tests.broker.raw_clients.sasl import CONFIGS
from tests.support.security.certificates import Certificates


@asynccontextmanager
async def tls_cluster(certificates: Certificates, protocol: str = "SSL", **more: Any) -> AsyncIterator[EmbeddedCluster]:
    configs = {
        **(CONFIGS if protocol == "SASL_SSL" else {}),
        "listeners": f"{protocol}://:0",
        "inter.broker.listener.name": protocol,
        "ssl.keystore.location": str(certificates.broker),
        "ssl.truststore.location": str(certificates.authority),
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    if protocol == "SASL_SSL":
        jaas = configs.pop("listener.name.sasl_plaintext.plain.sasl.jaas.config")
        configs["listener.name.sasl_ssl.plain.sasl.jaas.config"] = jaas
    async with EmbeddedCluster(configs=configs) as cluster:
        yield cluster
