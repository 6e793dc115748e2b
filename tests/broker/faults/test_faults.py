"""Faults of partitions and topics, as clients see them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioproducer.broker import AppendFault, EmbeddedCluster, Faults, Partition, Topic
from aioproducer.broker.faults.faults import NO_FAULTS
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.records.record_batch import RecordBatch
from tests.broker.raw_clients.batches import make_batch
from tests.broker.raw_clients.raw_client import RawClient


class ScriptedFaults(Faults):
    """Faults that a test sets."""

    def __init__(self) -> None:
        self.appends: list[AppendFault | None] = []
        self.throttle = 0
        self.left_out = 0
        self.topic_code = ErrorCode.NONE
        self.coordinator_code = ErrorCode.NONE
        self.known_leader: tuple[int, int] | None = None
        self.unknown_partitions = 0

    def on_append(
        self, node_id: int, partition: Partition, batch: RecordBatch, client_id: str | None
    ) -> AppendFault | None:
        assert (node_id, str(partition), batch.count) == (0, "t-0", 1)
        return self.appends.pop(0) if self.appends else None

    def leaves_out(self, node_id: int) -> bool:
        self.left_out -= 1
        return self.left_out >= 0

    def throttle_ms(self, node_id: int) -> int:
        return self.throttle

    def on_topic_metadata(self, node_id: int, topic: str) -> ErrorCode:
        return self.topic_code if topic == "t" else ErrorCode.NONE

    def coordinator_error(self, node_id: int, key: str) -> ErrorCode:
        return self.coordinator_code if key == "x" else ErrorCode.NONE

    def partitions(self, node_id: int, topic: Topic) -> int:
        return super().partitions(node_id, topic) - self.unknown_partitions

    def leader(self, node_id: int, partition: Partition) -> tuple[int, int]:
        return self.known_leader or super().leader(node_id, partition)


@pytest.fixture
def faults() -> ScriptedFaults:
    return ScriptedFaults()


@pytest.fixture
async def cluster(faults: ScriptedFaults) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(faults=faults) as cluster:
        cluster.create_topic("t")
        yield cluster


async def produce(cluster: EmbeddedCluster, client: RawClient, value: bytes) -> tuple[Any, Any]:
    """The response, and what it says of the partition."""
    data = TopicProduceData("t", cluster.topic("t").id, [PartitionProduceData(0, make_batch(value))])
    response = await client.request(ProduceRequest(acks=-1, topic_data=[data]), 13)
    (topic,) = response.responses
    return response, topic.partition_responses[0]


def values(cluster: EmbeddedCluster) -> list[bytes | None]:
    return [record.value for record in cluster.log("t").records()]


async def test_an_append_is_refused_or_denied(
    cluster: EmbeddedCluster, client: RawClient, faults: ScriptedFaults
) -> None:
    faults.appends = [
        AppendFault(ErrorCode.NOT_ENOUGH_REPLICAS, appended=False),
        AppendFault(ErrorCode.REQUEST_TIMED_OUT, appended=True),
        None,
    ]
    refused = (await produce(cluster, client, b"a"))[1]
    assert (refused.error_code, refused.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
    assert values(cluster) == []
    denied = (await produce(cluster, client, b"b"))[1]
    assert (denied.error_code, denied.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert values(cluster) == [b"b"]
    assert (await produce(cluster, client, b"c"))[1].base_offset == 1


async def test_a_partition_is_left_out(cluster: EmbeddedCluster, client: RawClient, faults: ScriptedFaults) -> None:
    faults.left_out = 1
    data = TopicProduceData("t", cluster.topic("t").id, [PartitionProduceData(0, make_batch(b"a"))])
    (topic,) = (await client.request(ProduceRequest(acks=-1, topic_data=[data]), 13)).responses
    assert topic.partition_responses == []
    assert values(cluster) == [b"a"]
    assert (await produce(cluster, client, b"b"))[1].base_offset == 1


async def test_throttling(cluster: EmbeddedCluster, client: RawClient, faults: ScriptedFaults) -> None:
    assert (await produce(cluster, client, b"a"))[0].throttle_time_ms == 0
    faults.throttle = 250
    assert (await produce(cluster, client, b"b"))[0].throttle_time_ms == 250


async def test_metadata_that_is_missing_or_old(
    cluster: EmbeddedCluster, client: RawClient, faults: ScriptedFaults
) -> None:
    async def described() -> Any:
        (topic,) = (await client.request(MetadataRequest([MetadataRequestTopic(name="t")]), 12)).topics
        return topic

    first = (await described()).partitions[0]
    assert (first.error_code, first.leader_id, first.leader_epoch) == (ErrorCode.NONE, 0, 0)
    faults.known_leader = (-1, 7)
    first = (await described()).partitions[0]
    assert (first.error_code, first.leader_id, first.leader_epoch) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, 7)
    cluster.create_partitions("t", 3)
    assert len((await described()).partitions) == 3
    faults.unknown_partitions = 1
    assert [partition.partition_index for partition in (await described()).partitions] == [0, 1]
    faults.topic_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = await described()
    assert (topic.error_code, topic.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])


async def test_a_coordinator_does_nothing(client: RawClient, faults: ScriptedFaults) -> None:
    faults.coordinator_code = ErrorCode.CONCURRENT_TRANSACTIONS
    codes = [(await client.request(InitProducerIdRequest(key, 1000), 4)).error_code for key in ("x", "y")]
    assert codes == [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE]
    faults.coordinator_code = ErrorCode.NONE
    assert (await client.request(InitProducerIdRequest("x", 1000), 4)).producer_epoch == 0


async def test_there_are_no_faults_by_default() -> None:
    async with EmbeddedCluster() as cluster:
        partition = cluster.create_topic("t").partitions[0]
        assert NO_FAULTS.on_append(0, partition, RecordBatch(make_batch(b"a")), None) is None
        assert not NO_FAULTS.leaves_out(0)
        assert NO_FAULTS.throttle_ms(0) == 0
        assert NO_FAULTS.on_topic_metadata(0, "t") is ErrorCode.NONE
        assert NO_FAULTS.coordinator_error(0, "x") is ErrorCode.NONE
        assert NO_FAULTS.leader(0, partition) == (0, 0)
