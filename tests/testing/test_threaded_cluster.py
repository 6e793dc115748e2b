"""The embedded cluster for callers without an event loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

import pytest

from aioproducer import KafkaProducer, TopicPartition
from aioproducer.errors import ConfigException, UnknownTopicOrPartitionException
from aioproducer.testing import ThreadedCluster, threaded_cluster
from tests.threads import assert_no_thread_is_left


def send(servers: str, topic: str, *values: bytes) -> None:
    async def send() -> None:
        async with KafkaProducer(bootstrap_servers=servers) as producer:
            for value in values:
                await producer.send(topic, value)

    asyncio.run(send())


def test_a_threaded_cluster_answers_calls_from_threads() -> None:
    before = threading.enumerate()
    with ThreadedCluster(2, topics={"a": 2}, configs={"num.partitions": 3}) as cluster:
        assert cluster.bootstrap_servers.count(":") == 2
        cluster.create_topic("b", assignments=[(0, 1)], configs={"retention.ms": 5000})
        assert cluster.topics() == {"a": 2, "b": 1}
        send(cluster.bootstrap_servers, "b", b"x", b"y")
        assert [record.value for record in cluster.records("b")] == [b"x", b"y"]
        assert (cluster.end_offset("b"), cluster.records("a", 1)) == (2, [])
        cluster.move_leader("b", 0, 1)
        assert cluster.leader("b") == 1
        cluster.stop_node(1)
        assert (cluster.leader("b"), cluster.bootstrap_servers.count(":")) == (0, 1)
        cluster.start_node(1)
        assert cluster.bootstrap_servers.count(":") == 2
        cluster.alter_topic_configs("b", {"producer.state.batches.to.retain": 8})
        cluster.alter_broker_configs({"log.producer.state.batches.to.retain": 9})
        assert cluster.call(lambda cluster: cluster.log("b").config.producer_state_batches_to_retain) == 8
        cluster.expire_producers("b")
        assert cluster.call(lambda cluster: cluster.log("b").active_producers()) == []
        cluster.move_coordinator("g", 1)
        assert cluster.committed_offsets("g") == dict[TopicPartition, int]()
        cluster.delete_topic("a")
        assert cluster.topics() == {"b": 1}
    assert_no_thread_is_left(before)


def test_errors_are_raised_to_the_caller() -> None:
    with ThreadedCluster(topics=["t"]) as cluster:
        with pytest.raises(UnknownTopicOrPartitionException):
            cluster.end_offset("nowhere")
        with pytest.raises(UnknownTopicOrPartitionException):
            cluster.records("t", 1)
        assert cluster.records("nowhere") == cluster.records("nowhere", 3) == []
        assert cluster.topics() == {"t": 1}
    with pytest.raises(RuntimeError, match="this cluster is not running"):
        cluster.topics()
    with pytest.raises(RuntimeError, match="this cluster was started before"):
        cluster.start()


def test_a_cluster_that_cannot_start_leaves_nothing_behind() -> None:
    with pytest.raises(ConfigException, match=r"num\.partition"):
        ThreadedCluster(configs={"num.partition": 1})
    before = threading.enumerate()
    with ThreadedCluster() as other:
        port = int(other.bootstrap_servers.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"):
            ThreadedCluster(ports=[port]).start()
    assert_no_thread_is_left(before)


@pytest.mark.parametrize("begun", [False, True])
def test_an_interrupted_start_leaves_no_thread(begun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Future[None]):
        def result(self, timeout: float | None = None) -> None:
            if begun:
                super().result(timeout)
            raise KeyboardInterrupt

    monkeypatch.setattr(threaded_cluster, "Future", Interrupted)
    before = threading.enumerate()
    with pytest.raises(KeyboardInterrupt):
        ThreadedCluster().start()
    assert_no_thread_is_left(before)
