from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.kafka.apache_kafka import KafkaTools, KafkaUnavailable, fetch_kafka
from tests.support.kafka_releases import RELEASES

from .raw_clients.raw_client import Connect, RawClient


@pytest.fixture
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    """A running cluster of one node, or as ``@pytest.mark.parametrize("cluster", [{...}], indirect=True)`` says.

    A ``data_dir`` is a directory in ``tmp_path``.
    """
    arguments = dict(getattr(request, "param", {}))
    if "data_dir" in arguments:
        arguments["data_dir"] = tmp_path / arguments["data_dir"]
    async with EmbeddedCluster(**arguments) as cluster:
        yield cluster


@pytest.fixture
async def connect(cluster: EmbeddedCluster) -> AsyncIterator[Connect]:
    """Opens connections to nodes of the cluster, all of them running."""
    async with AsyncExitStack() as stack:

        async def open_connection(node_id: int = 0) -> RawClient:
            client = await RawClient.connect(cluster.bootstrap_servers.split(",")[node_id])
            stack.push_async_callback(client.close)
            return client

        yield open_connection


@pytest.fixture
async def client(connect: Connect) -> RawClient:
    """A connection to node 0."""
    return await connect()


@pytest.fixture(scope="module", params=RELEASES)
def java_tools(request: pytest.FixtureRequest) -> Callable[[EmbeddedCluster], KafkaTools]:
    """Kafka's own tools of this release."""
    try:
        libs = fetch_kafka(request.param)
    except KafkaUnavailable as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"Kafka's own clients are NOT tested: {missing}")
    return lambda cluster: KafkaTools(libs, cluster.bootstrap_servers)
