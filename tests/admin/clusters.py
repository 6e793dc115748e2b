"""A cluster of two nodes, and an admin client of it that is quick to try again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer.admin import KafkaAdmin
from aioproducer.broker import EmbeddedCluster

QUICK: Any = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
}


@asynccontextmanager
async def running(**more: Any) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(nodes=2, configs={"num.partitions": 3}, **more) as cluster:
        yield cluster


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with running() as cluster:
        yield cluster


@pytest.fixture
async def admin(cluster: EmbeddedCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers, **QUICK) as admin:
        yield admin
