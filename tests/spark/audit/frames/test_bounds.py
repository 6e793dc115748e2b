"""The bounds that an audit looks up in a cluster before it begins. Needs PySpark's classes, and no session."""

from __future__ import annotations

import asyncio

import pytest

from aioproducer.errors import UnknownTopicOrPartitionException
from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.spark.topics import fill, open_transaction, transactions

pytestmark = pytest.mark.conformance


def test_bounds_know_the_end_and_where_what_is_committed_ends() -> None:
    pytest.importorskip("pyspark")
    from aioproducer.spark.audit.frames.bounds import Bound, find_bounds

    with ThreadedCluster(2, topics={"t": 2, "u": 1}) as cluster:
        config = {"bootstrap.servers": cluster.bootstrap_servers, "retry.backoff.ms": "5"}
        fill(cluster, "u", 4)
        transactions(cluster, "t", "commit", "abort")
        with open_transaction(cluster, "t"):
            assert asyncio.run(find_bounds(["t", "u", "t"], config)) == [
                Bound("t", 0, first=0, end=7, stable_end=6),
                Bound("t", 1, first=0, end=0, stable_end=0),
                Bound("u", 0, first=0, end=4, stable_end=4),
            ]
        with pytest.raises(UnknownTopicOrPartitionException, match="nosuch"):
            asyncio.run(find_bounds(["t", "nosuch"], config))
