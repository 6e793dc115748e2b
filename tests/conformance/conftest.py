"""Clusters of real Kafka, each started when a test first wants it and kept for the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aioproducer.testing.kafka.apache_kafka import QUICK_FAILOVER, ApacheKafka
from aioproducer.testing.pytest_kafka import running_kafka
from tests.support.kafka_releases import RELEASES

# Seconds for a test with the start of its cluster, and once the download of a release.
TIMEOUT = 300


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("keycloak") and "keycloak" not in str(config.getoption("markexpr")):
            item.add_marker(pytest.mark.skip(reason="Keycloak takes long to start: ask for it with -m keycloak"))
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT))


@pytest.fixture(scope="session")
def kafka_431() -> Iterator[ApacheKafka]:
    with running_kafka("4.3.1") as kafka:
        yield kafka


@pytest.fixture(scope="session")
def kafka_392() -> Iterator[ApacheKafka]:
    """The last line of releases that speaks the protocol's older versions."""
    with running_kafka("3.9.2") as kafka:
        yield kafka


@pytest.fixture(scope="session", params=["4.3.1", "3.9.2"])
def kafka(request: pytest.FixtureRequest) -> ApacheKafka:
    """One node, of each release in turn."""
    running: ApacheKafka = request.getfixturevalue(f"kafka_{request.param.replace('.', '')}")
    return running


@pytest.fixture(scope="module")
def kafka_cluster() -> Iterator[ApacheKafka]:
    """Three nodes; gone with the module, as tests that kill nodes leave little to rely on."""
    with running_kafka("4.3.1", nodes=3, configs=QUICK_FAILOVER) as kafka:
        yield kafka


@pytest.fixture(scope="module", params=RELEASES)
def kafka_clusters(request: pytest.FixtureRequest) -> Iterator[ApacheKafka]:
    """Three nodes of each release in turn, on which no topic is made by asking for it."""
    with running_kafka(request.param, nodes=3, configs={"auto.create.topics.enable": False}) as kafka:
        yield kafka
