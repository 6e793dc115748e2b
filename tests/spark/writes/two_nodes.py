"""Fixtures: an embedded cluster of two nodes with a script of faults, and the options of a sink that writes to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.spark.sink.sink_options import SinkOptions
from aioproducer.testing.faults.fault_script import FaultScript

from .epochs import options


@pytest.fixture
def faults() -> Iterator[FaultScript]:
    script = FaultScript(nodes=2)
    yield script
    script.verify()


@pytest.fixture
async def cluster(faults: FaultScript) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(2, faults=faults) as cluster:
        cluster.create_topic("t", 1)
        yield cluster


@pytest.fixture
def chosen(cluster: EmbeddedCluster) -> SinkOptions:
    return options(cluster)
