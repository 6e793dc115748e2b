"""Clusters with SASL, and what tests say to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aioproducer.broker import EmbeddedCluster
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aioproducer.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aioproducer.security.jaas import PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE

from .raw_client import RawClient

PASSWORD = 'alice\'s "planted" secret'
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
ESCAPED = PASSWORD.replace('"', '\\"')
CONFIGS = {
    "listeners": "SASL_PLAINTEXT://:0",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{PLAIN_LOGIN_MODULE} required user_alice="{ESCAPED}" user_bob="bob\'s";'
    ),
    "connection.failed.authentication.delay.ms": 1,
}


@asynccontextmanager
async def sasl_cluster(**configs: Any) -> AsyncIterator[EmbeddedCluster]:
    """Alice is known to it by every mechanism."""
    given = {name.replace("__", "."): value for name, value in configs.items()}
    nodes = given.pop("nodes", 1)
    async with EmbeddedCluster(nodes, configs={**CONFIGS, **given}) as cluster:
        for mechanism in MECHANISMS[1:]:
            cluster.alter_user_scram_credentials("alice", PASSWORD, mechanism=mechanism)
        yield cluster


def alice(cluster: EmbeddedCluster, mechanism: str = "PLAIN", **more: object) -> dict[str, Any]:
    """Alice's credentials for a client: this project's, aiokafka or kafka-python."""
    return {
        "bootstrap_servers": cluster.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
        **more,
    }


def java_configs(mechanism: str, user: str, escaped: str) -> dict[str, str]:
    """The credentials of a user for a Java client; the password is escaped for quotation marks."""
    module = PLAIN_LOGIN_MODULE if mechanism == "PLAIN" else SCRAM_LOGIN_MODULE
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{user}" password="{escaped}";',
    }


async def handshake(client: RawClient, mechanism: str = "PLAIN") -> Any:
    return await client.request(SaslHandshakeRequest(mechanism), 1)


async def token(client: RawClient, token: bytes, version: int = 2) -> Any:
    return await client.request(SaslAuthenticateRequest(token), version)


async def log_in(client: RawClient, user: str = "alice", password: str = PASSWORD) -> Any:
    """By PLAIN."""
    await handshake(client)
    return await token(client, f"\0{user}\0{password}".encode())


def figures(cluster: EmbeddedCluster, listener: str = "SASL_PLAINTEXT") -> dict[str, int]:
    """What the node counts of authentication that is not 0."""
    found = cluster.metrics().select("socket-server-metrics", listener=listener)
    counted = {of.name: int(value) for of, value in found.items() if of.name.endswith(("-total", "-killed-count"))}
    return {name: count for name, count in counted.items() if count}
