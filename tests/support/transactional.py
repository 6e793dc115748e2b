"""Scripted clusters and producers with transactions, and what a read_committed consumer sees."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from tests.support.producing import make_producer
from tests.support.scripted_broker import ScriptedCluster, set_error

PROTOCOLS = pytest.mark.parametrize("protocol", [1, 2], ids=["v1", "v2"])


@asynccontextmanager
async def a_cluster(protocol: int = 2, nodes: int = 1, **config: Any) -> AsyncIterator[ScriptedCluster]:
    async with ScriptedCluster(nodes, transaction_version=protocol, **config) as cluster:
        cluster.create_topic("t", 3, nodes)
        yield cluster


def transactional(cluster: ScriptedCluster, transactional_id: str = "x", **config: Any) -> KafkaProducer:
    return make_producer(cluster.bootstrap_servers, transactional_id=transactional_id, **config)


def committed(cluster: EmbeddedCluster, topic: str = "t") -> list[bytes | None]:
    """What a read_committed consumer sees, partition by partition."""
    values: list[bytes | None] = []
    for partition in cluster.topic(topic).partitions:
        log = partition.log
        hidden = log.aborted_transactions(0, log.last_stable_offset)
        for batch in log.batches():
            span = [one for one in hidden if one.producer_id == batch.producer_id]
            if batch.is_control or batch.base_offset >= log.last_stable_offset:
                continue
            if not any(one.first_offset <= batch.base_offset <= one.last_offset for one in span):
                values += [record.value for record in batch.records()]
    return values


def all_stable(cluster: ScriptedCluster) -> bool:
    logs = [partition.log for topic in cluster.topics for partition in topic.partitions]
    return all(log.last_stable_offset == log.log_end_offset for log in logs)


def set_code(response: Any, code: ErrorCode) -> None:
    if hasattr(response, "results_by_topic_v3_and_below"):
        for topic in response.results_by_topic_v3_and_below:
            for partition in topic.results_by_partition:
                partition.partition_error_code = code
    elif hasattr(response, "topics"):
        for topic in response.topics:
            for partition in topic.partitions:
                partition.error_code = code
    else:
        set_error(response, code)
