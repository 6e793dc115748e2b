from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.kafka.apache_kafka import ApacheKafka, KafkaTools, KafkaUnavailable, fetch_kafka
from aioproducer.testing.pytest_kafka import running_kafka

from .kafka_comparison import ComparedBroker
from .raw_client import Connect, RawClient


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


@pytest.fixture(scope="session")
def kafka() -> Iterator[ApacheKafka]:
    """Apache Kafka, for all that is compared with it."""
    with running_kafka("4.3.1") as kafka:
        yield kafka


@pytest.fixture
async def pair(kafka: ApacheKafka) -> AsyncIterator[tuple[ComparedBroker, ComparedBroker]]:
    """A connection to the embedded broker, as it was before KIP-1269, and one to Apache Kafka."""
    async with EmbeddedCluster(old_nodes=[0]) as cluster:
        brokers = (cluster.bootstrap_servers, kafka.bootstrap_servers)
        compared = [ComparedBroker(await RawClient.connect(servers)) for servers in brokers]
        yield compared[0], compared[1]
        for broker in compared:
            await broker.client.close()


@pytest.fixture(scope="module", params=["4.3.1", "3.9.2"])
def java_tools(request: pytest.FixtureRequest) -> Callable[[EmbeddedCluster], KafkaTools]:
    """Kafka's own tools of this release."""
    try:
        libs = fetch_kafka(request.param)
    except KafkaUnavailable as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"Kafka's own clients are NOT tested: {missing}")
    return lambda cluster: KafkaTools(libs, cluster.bootstrap_servers)
