"""Produce requests with acks=all, and DeleteRecords, wait for replicas that are held."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import InvalidReplicaAssignmentException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.raw_clients.batches import make_batch
from tests.broker.raw_clients.raw_client import RawClient
from tests.support.polling import eventually

LONG_MS = 60_000

pytestmark = pytest.mark.parametrize("cluster", [{"nodes": 3}], indirect=True)


@pytest.fixture(autouse=True)
def topic(cluster: EmbeddedCluster) -> None:
    """Node 0 leads, nodes 1 and 2 follow."""
    cluster.create_topic("t", assignments=[[0, 1, 2]], configs={"min.insync.replicas": 2})


def produce(timeout_ms: int = LONG_MS, acks: int = -1) -> ProduceRequest:
    data = TopicProduceData("t", partition_data=[PartitionProduceData(0, make_batch(b"a", b"b"))])
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data])


def outcome(response: Any) -> tuple[str, int]:
    answer = response.responses[0].partition_responses[0]
    return ErrorCode(answer.error_code).name, answer.base_offset


async def answer(client: RawClient) -> tuple[str, int]:
    return outcome((await client.receive(ProduceRequest.API_KEY, 9))[1])


def waiting(cluster: EmbeddedCluster, kind: str = "Produce") -> float:
    return cluster.metrics().select(delayedOperation=kind, node_id="node-0")["NumDelayedOperations"]


async def fetched(client: RawClient) -> tuple[int, int]:
    """The high watermark, and how many bytes may be read."""
    partition = FetchPartition(0, partition_max_bytes=10**6)
    request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[FetchTopic("t", partitions=[partition])])
    found = (await client.request(request, 12)).responses[0].partitions[0]
    return found.high_watermark, len(found.records)


async def test_it_is_answered_when_the_last_replica_has_copied_it(cluster: EmbeddedCluster, client: RawClient) -> None:
    for node in (1, 2):
        cluster.hold_replica("t", 0, node)
    await client.send(produce(), 9)
    await eventually(lambda: waiting(cluster))
    cluster.release_replica("t", 0, 2)
    assert waiting(cluster) == 1, "one replica is not all"
    cluster.release_replica("t", 0, 1)
    assert await answer(client) == ("NONE", 0)
    assert waiting(cluster) == 0


async def test_its_time_is_up(cluster: EmbeddedCluster, client: RawClient) -> None:
    """The batch is in the log all the same, as in Kafka: a retry of an idempotent producer finds it."""
    cluster.hold_replica("t", 0, 1)
    assert outcome(await client.request(produce(timeout_ms=5), 9)) == ("REQUEST_TIMED_OUT", 0)
    assert cluster.log("t").log_end_offset == 2


async def test_acks_1_waits_for_no_replica(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.hold_replica("t", 0, 1)
    assert outcome(await client.request(produce(acks=1), 9)) == ("NONE", 0)


async def test_consumers_see_only_replicated_records(cluster: EmbeddedCluster, client: RawClient) -> None:
    await client.request(produce(), 9)
    cluster.hold_replica("t", 0, 1)
    await client.request(produce(acks=1), 9)
    assert await fetched(client) == (2, len(make_batch(b"a", b"b")))
    cluster.release_replica("t", 0, 1)
    assert await fetched(client) == (4, 2 * len(make_batch(b"a", b"b")))


async def test_a_fetch_that_waits_gets_it_when_it_is_replicated(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.hold_replica("t", 0, 1)
    await client.request(produce(acks=1), 9)
    partition = FetchPartition(0, partition_max_bytes=10**6)
    await client.send(
        FetchRequest(max_wait_ms=LONG_MS, min_bytes=1, topics=[FetchTopic("t", partitions=[partition])]), 12
    )
    await eventually(lambda: cluster.delayed_fetches)
    cluster.release_replica("t", 0, 1)
    response: Any = (await client.receive(FetchRequest.API_KEY, 12))[1]
    assert response.responses[0].partitions[0].high_watermark == 2


async def test_the_others_do_without_a_replica_that_is_out_of_sync(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.hold_replica("t", 0, 1)
    await client.send(produce(), 9)
    await eventually(lambda: waiting(cluster))
    cluster.hold_replica("t", 0, 1, in_sync=False)
    assert await answer(client) == ("NONE", 0)
    metadata = await client.request(MetadataRequest([MetadataRequestTopic(name="t")]), 12)
    assert metadata.topics[0].partitions[0].isr_nodes == [0, 2]


async def test_with_too_few_in_sync_nothing_is_replicated(cluster: EmbeddedCluster, client: RawClient) -> None:
    for node in (1, 2):
        cluster.hold_replica("t", 0, node)
    await client.send(produce(timeout_ms=200), 9)
    await eventually(lambda: waiting(cluster))
    for node in (1, 2):
        cluster.hold_replica("t", 0, node, in_sync=False)
    assert await answer(client) == ("REQUEST_TIMED_OUT", 0)
    assert outcome(await client.request(produce(), 9)) == ("NOT_ENOUGH_REPLICAS", -1)
    assert outcome(await client.request(produce(acks=1), 9)) == ("NONE", 2)
    assert await fetched(client) == (0, 0)
    cluster.release_replica("t", 0, 1)
    assert (await fetched(client))[0] == 4


async def test_a_node_that_stops_is_waited_for_no_more(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.hold_replica("t", 0, 1)
    await client.send(produce(), 9)
    await eventually(lambda: waiting(cluster))
    await cluster.stop_node(1)
    assert await answer(client) == ("NONE", 0)
    await cluster.start_node(1)
    assert outcome(await client.request(produce(), 9)) == ("NONE", 2)


async def test_another_leader(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.hold_replica("t", 0, 1)
    await client.send(produce(), 9)
    await eventually(lambda: waiting(cluster))
    cluster.move_leader("t", 0, 1)
    assert (await answer(client))[0] == "NOT_LEADER_OR_FOLLOWER"
    assert cluster.log("t").high_watermark == 2, "the leader has everything"


async def test_a_disconnected_client_is_forgotten(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.hold_replica("t", 0, 1)
    await client.send(produce(), 9)
    await eventually(lambda: waiting(cluster))
    await client.close()
    await eventually(lambda: not waiting(cluster))


async def test_records_that_no_replica_has_any_more(cluster: EmbeddedCluster, client: RawClient) -> None:
    def delete(timeout_ms: int) -> DeleteRecordsRequest:
        return DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 2)])], timeout_ms)

    def result(response: Any) -> tuple[str, int]:
        found = response.topics[0].partitions[0]
        return ErrorCode(found.error_code).name, found.low_watermark

    await client.request(produce(), 9)
    cluster.hold_replica("t", 0, 1)
    assert result(await client.request(delete(timeout_ms=5), 2)) == ("REQUEST_TIMED_OUT", -1)
    assert cluster.log("t").log_start_offset == 2
    await client.send(delete(LONG_MS), 2)
    await eventually(lambda: waiting(cluster, "DeleteRecords"))
    cluster.release_replica("t", 0, 1)
    assert result((await client.receive(DeleteRecordsRequest.API_KEY, 2))[1]) == ("NONE", 2)


@pytest.mark.parametrize("node", [0, 3])
async def test_only_live_followers_can_be_held(cluster: EmbeddedCluster, node: int) -> None:
    with pytest.raises(InvalidReplicaAssignmentException, match=f"node {node} is no live follower of t-0"):
        cluster.hold_replica("t", 0, node)


async def test_a_producer_gets_over_it(cluster: EmbeddedCluster) -> None:
    """Each attempt times out at the broker; the one that meets the replica again finds the batch there."""
    cluster.hold_replica("t", 0, 1)
    async with KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, request_timeout_ms=50, retry_backoff_ms=5
    ) as producer:
        delivery = producer.send("t", b"value")
        while not cluster.metrics().select(request="Produce", error="REQUEST_TIMED_OUT"):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        cluster.release_replica("t", 0, 1)
        assert (await delivery).offset == 0
    assert cluster.log("t").log_end_offset == 1
