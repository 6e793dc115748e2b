"""A connection to each of the two brokers that are compared."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.pytest_kafka import running_kafka
from tests.broker.raw_clients.raw_client import RawClient

from .kafka_comparison import ComparedBroker


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
