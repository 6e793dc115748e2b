"""A scripted cluster, and the class under test on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aioproducer.compat.aiokafka import AIOKafkaProducer
from tests.support.scripted_broker import ScriptedCluster


@asynccontextmanager
async def a_cluster(partitions: int = 2, nodes: int = 1, **options: Any) -> AsyncIterator[ScriptedCluster]:
    """With topic ``t``."""
    async with ScriptedCluster(nodes, **options) as cluster:
        cluster.create_topic("t", partitions)
        yield cluster


def make(cluster: ScriptedCluster, **arguments: Any) -> AIOKafkaProducer:
    """Not started; it is quick to try again."""
    return AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **{"retry_backoff_ms": 5, **arguments})
