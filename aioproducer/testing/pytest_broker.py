"""The pytest plugin: ``kafka_broker`` and ``kafka_cluster``, an embedded cluster of one and of three nodes.

Where aioproducer is installed, every pytest run imports this module, so it imports nothing else of the package before
the first fixture is used.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from aioproducer.testing.threaded_cluster import ThreadedCluster

MARKER = "kafka"
_clusters = pytest.StashKey[list["ThreadedCluster"]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(nodes=..., configs={{...}}, topics={{...}}, unused_faults='error', ...): "
        "the cluster of the fixtures kafka_broker and kafka_cluster (aioproducer)",
    )


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[ThreadedCluster]:
    """A Kafka cluster of one node, for this test alone; ``@pytest.mark.kafka(...)`` changes it."""
    yield from _cluster(request, nodes=1)


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[ThreadedCluster]:
    """A Kafka cluster of three nodes, for this test alone; ``@pytest.mark.kafka(...)`` changes it."""
    yield from _cluster(request, nodes=3)


def _cluster(request: pytest.FixtureRequest, nodes: int) -> Iterator[ThreadedCluster]:
    from aioproducer.testing.threaded_cluster import ThreadedCluster

    options: dict[str, Any] = {"nodes": nodes}
    # The closest marker comes last: a test's marker overrides those of its class and module.
    for mark in reversed(list(request.node.iter_markers(MARKER))):
        if mark.args:
            raise pytest.UsageError(f"{request.node.nodeid}: @pytest.mark.{MARKER} takes names, as in nodes=3")
        options |= mark.kwargs
    unused = options.pop("unused_faults", "error")
    if unused not in ("error", "ignore"):
        raise pytest.UsageError(f"{request.node.nodeid}: unused_faults is 'error' or 'ignore', not {unused!r}")
    try:
        cluster = ThreadedCluster(**options)
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"{request.node.nodeid}: @pytest.mark.{MARKER}: {error}") from error
    with cluster:
        if unused == "error":
            request.node.stash.setdefault(_clusters, []).append(cluster)
        yield cluster


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fails a test whose scripted faults never applied, because it has not tested what it describes."""
    yield
    for cluster in item.stash.get(_clusters, ()):
        try:
            cluster.faults.verify()
        except AssertionError as error:
            pytest.fail(str(error), pytrace=False)
