"""Real Kafka in pytest fixtures. Tests are skipped on machines that cannot run it, but never in CI."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.kafka.kafka_libs import DEFAULT_VERSION, KafkaUnavailable, fetch_kafka, find_java


def require_kafka(version: str = DEFAULT_VERSION) -> None:
    """Fetch this release. Without Java or Maven the test is skipped, or fails where ``$CI`` is ``true``."""
    try:
        fetch_kafka(version)
        find_java(version)
    except KafkaUnavailable as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must run the tests against real Kafka: {missing}", pytrace=False)
        pytest.skip(f"no real Kafka to test against: {missing}")


@contextmanager
def running_kafka(
    version: str = DEFAULT_VERSION,
    *,
    nodes: int = 1,
    configs: Mapping[str, str | int | float | bool] | None = None,
    listeners: Mapping[str, str] | None = None,
    classpath: Sequence[Path] = (),
) -> Iterator[ApacheKafka]:
    """A started cluster of this release.

    A fixture is ``with running_kafka() as kafka: yield kafka``, of any scope.
    """
    require_kafka(version)
    with ApacheKafka(version, nodes=nodes, configs=configs, listeners=listeners, classpath=classpath) as kafka:
        yield kafka
