"""``producer.client``, and the private methods beside it, have what instrumentation of aiokafka reads."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.compat.aiokafka import AIOKafkaProducer, errors, partitions
from tests.compat.clusters import a_cluster, make
from tests.support.leaks import no_leaks as no_leaks

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


@pytest.mark.parametrize("servers", ["one:9092", "one,two", ["one:9092", "two:9093"]], ids=str)
def test_servers_are_as_they_were_given(servers: Any) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=servers, client_id="mine")
    assert producer.client._bootstrap_servers == servers
    assert producer.client._client_id == "mine"


def test_servers_from_an_iterator_are_a_list() -> None:
    producer = AIOKafkaProducer(bootstrap_servers=iter(["one:9092", "two"]))
    assert producer.client._bootstrap_servers == ["one:9092", "two"]
    assert producer.kafka_producer.config.bootstrap_servers == ("one:9092", "two:9092")


async def test_it_waits_for_a_topic_and_keeps_the_cluster_id_for_datadog() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        assert await producer.client._wait_on_metadata("t") == {0, 1}
        assert producer.client._dd_cluster_id == cluster.cluster_id


async def test_anything_else_says_what_to_use_instead() -> None:
    client: Any = AIOKafkaProducer().client
    with pytest.raises(
        AttributeError, match=r"producer\.client has no 'force_metadata_update'.*kafka_producer.*KafkaA"
    ):
        client.force_metadata_update()
    assert getattr(client, "cluster", None) is None
    client._dd_cluster_id_failure_time = 1.0
    assert client._dd_cluster_id_failure_time == 1.0, "instrumentation keeps its own there"


async def test_the_partition_of_a_key_is_known_before_it_is_sent() -> None:
    async with a_cluster(5) as cluster, make(cluster) as producer:
        await producer.client._wait_on_metadata("t")
        for number in range(20):
            key = b"key %d" % number
            expected = producer._partition("t", None, key, b"value", key, b"value")
            assert (await producer.send_and_wait("t", b"value", key=key)).partition == expected
        assert producer._partition("t", 3, None, b"value", None, b"value") == 3


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({}, None),
        ({"partitioner_ignore_keys": True}, b"k"),
        ({"partitioner_class": lambda *record: 0}, b"k"),
    ],
    ids=["without key", "keys are ignored", "partitioner of its own"],
)
async def test_a_partition_that_is_decided_later_is_none(config: dict[str, Any], key: bytes | None) -> None:
    async with a_cluster() as cluster, make(cluster, **config) as producer:
        await producer.client._wait_on_metadata("t")
        assert producer._partition("t", None, key, b"value", key, b"value") is None


async def test_where_aiokafka_is_not_installed_the_partition_of_a_key_is_decided_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partitions, "aiokafka_module", lambda name: None)
    async with a_cluster() as cluster, make(cluster) as producer:
        await producer.client._wait_on_metadata("t")
        assert producer._partition("t", None, b"k", b"value", b"k", b"value") is None


async def test_the_partition_of_a_topic_that_was_not_waited_for_is_an_error() -> None:
    with pytest.raises(errors.UnknownTopicOrPartitionError, match=r"topic 't': await partitions_for"):
        AIOKafkaProducer()._partition("t", None, b"k", b"value", b"k", b"value")
