from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aioproducer.sync import KafkaProducer
from aioproducer.testing import ThreadedCluster
from tests.support.producing import QUICK

MakeProducer = Callable[..., KafkaProducer[Any, Any]]


def own_threads() -> list[threading.Thread]:
    """The threads of producers; the cluster has others, which it starts when it needs them."""
    return [thread for thread in threading.enumerate() if thread.name == "aioproducer"]


@pytest.fixture
def cluster() -> Iterator[ThreadedCluster]:
    with ThreadedCluster(topics={"t": 1, "six": 6, "in": 1}) as cluster:
        yield cluster


@pytest.fixture
def make_producer(cluster: ThreadedCluster) -> Iterator[MakeProducer]:
    """Producers that lose no time, and are closed at the end; no thread of theirs is left."""
    before = own_threads()
    made: list[KafkaProducer[Any, Any]] = []

    def make(**config: Any) -> KafkaProducer[Any, Any]:
        made.append(KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **{**QUICK, **config}))
        return made[-1]

    yield make
    for producer in made:
        producer.close()
    assert own_threads() == before


@pytest.fixture
def producer(make_producer: MakeProducer) -> KafkaProducer:
    return make_producer()
