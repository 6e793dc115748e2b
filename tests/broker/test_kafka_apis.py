from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster, kafka_apis
from aioproducer.broker.coordinators.transaction_coordinator import TransactionCoordinator
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.kafka_apis import APIS, KafkaApis
from aioproducer.broker.requests import long_work, slices
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS as MESSAGES
from aioproducer.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from aioproducer.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from aioproducer.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from aioproducer.protocol.messages.describe_transactions import DescribeTransactionsRequest
from aioproducer.protocol.messages.end_txn import EndTxnRequest
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aioproducer.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from aioproducer.types import TopicPartition

from .raw_clients.batches import make_batch
from .raw_clients.raw_client import Connect, RawClient


def make_context() -> BrokerContext:
    return EmbeddedCluster()._context(0)


@pytest.fixture
def apis() -> KafkaApis:
    return KafkaApis(make_context())


EVERY_API = pytest.mark.parametrize("key", APIS, ids=lambda key: ApiKey(key).name)


@EVERY_API
def test_every_version_of_the_table_is_supported_and_no_other(apis: KafkaApis, key: int) -> None:
    for version in range(-1, 100):
        assert apis.is_supported(key, version) == (version in APIS[key].versions)


@EVERY_API
def test_every_version_of_the_table_can_be_decoded(key: int) -> None:
    versions, api = APIS[key].versions, MESSAGES[ApiKey(key)]
    for version in range(versions.low, versions.high + 1):
        assert version in api.request.VALID_VERSIONS
        assert version in api.response.VALID_VERSIONS


def test_an_older_broker_has_older_versions() -> None:
    context = make_context()
    apis = KafkaApis(context, {ApiKey.PRODUCE: 7, ApiKey.METADATA: 99})
    assert [apis.is_supported(ApiKey.PRODUCE, version) for version in (2, 3, 7, 8)] == [False, True, True, False]
    newest = APIS[ApiKey.METADATA].versions.high
    assert [apis.is_supported(ApiKey.METADATA, version) for version in (newest, newest + 1)] == [True, False]


def test_api_versions_is_answered_whatever_its_version(apis: KafkaApis) -> None:
    assert apis.is_supported(ApiKey.API_VERSIONS, 99)


@pytest.mark.parametrize("api_key", [ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.LEADER_AND_ISR, 1000, -1])
def test_other_apis_are_not_supported(apis: KafkaApis, api_key: int) -> None:
    assert not apis.is_supported(api_key, 0)


class TestInSlices:
    """However short the slices of long work are, the answers are the same."""

    @pytest.fixture(autouse=True)
    def no_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each step is a slice of its own, and every request is large."""
        monkeypatch.setattr(kafka_apis, "LARGE", -1)
        monkeypatch.setattr(kafka_apis, "PRODUCE_AT_ONCE", 0)
        monkeypatch.setattr(long_work, "FIRST_SLICE", -1)
        monkeypatch.setattr(slices, "SLICE", -1)

    async def test_topics_come_are_described_changed_and_go(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        names = [f"t{number}" for number in range(40)]
        wanted = [MetadataRequestTopic(name=name) for name in names]
        assert [topic.name for topic in (await client.request(MetadataRequest(wanted), 13)).topics] == names
        await client.request(CreateTopicsRequest([CreatableTopic("wide", 100, 1)]), 7)
        await client.request(CreatePartitionsRequest([CreatePartitionsTopic("wide", 200, None)]), 3)
        topics = {topic.name: topic for topic in (await client.request(MetadataRequest(None), 13)).topics}
        assert list(topics) == [*names, "wide"]
        assert [partition.partition_index for partition in topics["wide"].partitions] == list(range(200))
        change = AlterConfigsResource(4, "", [AlterableConfig("message.max.bytes", 0, "7000")])
        await client.request(IncrementalAlterConfigsRequest([change]), 1)
        resources = [DescribeConfigsResource(2, name, ["max.message.bytes"]) for name in [*names, "wide", "t0"]]
        described = (await client.request(DescribeConfigsRequest(resources), 4)).results
        assert [one.resource_name for one in described] == [*names, "wide"]
        assert {one.configs[0].value for one in described} == {"7000"}
        answers = (await client.request(DeleteTopicsRequest([DeleteTopicState(name) for name in names]), 6)).responses
        assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
        (wide,) = cluster.topics
        assert (wide.name, len(wide.partitions)) == ("wide", 200)
        (answer,) = (await client.request(DeleteTopicsRequest([DeleteTopicState("wide")]), 6)).responses
        assert (answer.error_code, cluster.topics, wide.partitions) == (ErrorCode.NONE, [], [])

    async def test_records_come_and_are_read(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        cluster.create_topic("wide", partitions=100)
        topic_id = cluster.topic("wide").id
        data = [PartitionProduceData(index, make_batch(b"x")) for index in range(100)]
        produced = await client.request(ProduceRequest(acks=-1, topic_data=[TopicProduceData("", topic_id, data)]), 13)
        assert {one.error_code for one in produced.responses[0].partition_responses} == {ErrorCode.NONE}
        ends = ListOffsetsTopic("wide", [ListOffsetsPartition(index, -1, -1) for index in range(100)])
        found = (await client.request(ListOffsetsRequest(-1, 0, [ends]), 9)).topics[0].partitions
        assert [one.offset for one in found] == [1] * 100
        partitions = [FetchPartition(index, partition_max_bytes=1000) for index in range(100)]
        for wait in (0, 60_000):
            request = FetchRequest(max_wait_ms=wait, min_bytes=1, topics=[FetchTopic("", topic_id, partitions)])
            answers = (await client.request(request, 18)).responses[0].partitions
            assert [len(answer.records) for answer in answers] == [len(make_batch(b"x"))] * 100

    async def test_offsets_are_committed_in_a_transaction_and_forgotten(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        cluster.create_topic("wide", partitions=500)
        started = await client.request(InitProducerIdRequest("x", 60_000), 4)
        producer = started.producer_id, started.producer_epoch
        topics = [AddPartitionsToTxnTopic("wide", list(range(500)))]
        added = await client.request(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="x",
                v3_and_below_producer_id=producer[0],
                v3_and_below_producer_epoch=producer[1],
                v3_and_below_topics=topics,
            ),
            3,
        )
        (answered,) = added.results_by_topic_v3_and_below
        assert [one.partition_error_code for one in answered.results_by_partition] == [ErrorCode.NONE] * 500
        partitions = [TxnOffsetCommitRequestPartition(index, index) for index in range(501)]
        commit = TxnOffsetCommitRequest("x", "g", *producer, topics=[TxnOffsetCommitRequestTopic("wide", partitions)])
        (answered,) = (await client.request(commit, 5)).topics
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [one.error_code for one in answered.partitions] == [*[ErrorCode.NONE] * 500, unknown]
        ended = await client.request(EndTxnRequest("x", *producer, True), 4)
        assert ended.error_code == ErrorCode.NONE
        assert cluster.committed_offsets("g") == {TopicPartition("wide", index): index for index in range(500)}
        (answered,) = (await client.request(commit, 4)).topics
        assert {one.error_code for one in answered.partitions} == {ErrorCode.TRANSACTION_ABORTABLE, unknown}
        named = [OffsetDeleteRequestPartition(index) for index in range(499)]
        deleted = await client.request(OffsetDeleteRequest("g", [OffsetDeleteRequestTopic("wide", named)]), 0)
        assert {one.error_code for one in deleted.topics[0].partitions} == {ErrorCode.NONE}
        assert cluster.committed_offsets("g") == {TopicPartition("wide", 499): 499}

    @pytest.mark.parametrize("large", [-1, 32 * 1024])
    async def test_requests_of_a_connection_stay_in_their_order(
        self,
        cluster: EmbeddedCluster,
        client: RawClient,
        connect: Connect,
        monkeypatch: pytest.MonkeyPatch,
        large: int,
    ) -> None:
        """A client sends three commits at once, the first of many partitions, and leaves. They are decoded in slices,
        or only carried out in slices."""
        monkeypatch.setattr(kafka_apis, "LARGE", large)
        cluster.create_topic("wide", partitions=1000)

        def commit(offset: int, count: int) -> bytes:
            partitions = [OffsetCommitRequestPartition(index, offset) for index in range(count)]
            topics = [OffsetCommitRequestTopic("wide", partitions=partitions)]
            return client.frame(OffsetCommitRequest("g", topics=topics), 9)[1]

        await client.send_bytes(commit(1, 1000) + commit(2, 500) + commit(3, 1))
        await client.close()
        (server,) = cluster._servers.values()
        other = await connect()
        while cluster.committed_offsets("g").get(TopicPartition("wide", 0)) != 3:
            await other.request(MetadataRequest([]), 13)
        while len(server.context.long_work):
            await other.request(MetadataRequest([]), 13)
        committed = cluster.committed_offsets("g")
        assert [committed[TopicPartition("wide", index)] for index in (0, 1, 499, 500, 999)] == [3, 2, 2, 1, 1]

    @pytest.mark.parametrize("cluster", [{"configs": {"queued.max.request.bytes": 2**27}}], indirect=True)
    @pytest.mark.parametrize("at_once", [0, 600, 1500])
    async def test_records_without_an_answer_are_kept_in_order_when_the_client_leaves(
        self,
        cluster: EmbeddedCluster,
        client: RawClient,
        connect: Connect,
        monkeypatch: pytest.MonkeyPatch,
        at_once: int,
    ) -> None:
        """All are decoded in slices, or only the first, or none."""
        monkeypatch.setattr(kafka_apis, "PRODUCE_AT_ONCE", at_once)
        cluster.create_topic("wide", partitions=1000)
        topic_id = cluster.topic("wide").id

        def produce(value: bytes, count: int) -> bytes:
            data = [PartitionProduceData(index, make_batch(value)) for index in range(count)]
            return client.frame(ProduceRequest(acks=0, topic_data=[TopicProduceData("", topic_id, data)]), 13)[1]

        await client.send_bytes(produce(b"1", 1000) + produce(b"2", 500) + produce(b"3", 1))
        await client.close()
        (server,) = cluster._servers.values()
        other = await connect()
        while cluster.log("wide").log_end_offset < 3:
            await other.request(MetadataRequest([]), 13)
        values = [[record.value for record in cluster.log("wide", index).records()] for index in (0, 1, 499, 500, 999)]
        assert values == [[b"1", b"2", b"3"], [b"1", b"2"], [b"1", b"2"], [b"1"], [b"1"]]
        while server.sockets.memory.used:
            await other.request(MetadataRequest([]), 13)

    @pytest.mark.parametrize("cluster", [{"configs": {"queued.max.request.bytes": 2**27}}], indirect=True)
    async def test_records_that_cannot_be_read_cost_the_connection_and_no_memory(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        data = [PartitionProduceData(index, make_batch(b"x")) for index in range(1000)]
        _, frame = client.frame(ProduceRequest(acks=-1, topic_data=[TopicProduceData("t", partition_data=data)]), 9)
        await client.send_bytes(frame[:-40_000] + b"\xff" * 40_000)
        assert await client.is_closed()
        (server,) = cluster._servers.values()
        assert (await (await connect()).request(MetadataRequest([]), 13)).brokers
        assert server.sockets.memory.used == 0

    async def test_markers_of_a_large_transaction_are_written_in_turns(
        self, cluster: EmbeddedCluster, client: RawClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(TransactionCoordinator, "markers_at_once", 2)
        finishing: list[tuple[Any, Any]] = []
        monkeypatch.setattr(TransactionCoordinator, "_go_on", lambda coordinator, *work: finishing.append(work))
        cluster.create_topic("wide", partitions=100)
        for committed in (True, False):
            started = await client.request(InitProducerIdRequest("x", 60_000), 4)
            producer = started.producer_id, started.producer_epoch
            topics = [AddPartitionsToTxnTopic("wide", list(range(100)))]
            add = AddPartitionsToTxnRequest([], "x", *producer, topics)
            end = EndTxnRequest("x", *producer, committed)
            other = EndTxnRequest("x", *producer, not committed)
            await client.request(add, 3)
            requests = [(end, 4), (other, 4), (end, 4), (InitProducerIdRequest("x", 60_000), 4), (add, 3)]
            await client.send_bytes(b"".join(client.frame(*one)[1] for one in requests))
            codes: list[int] = []
            for request, version in requests:
                _, response = await client.receive(request.API_KEY, version)
                if request is add:
                    (answered,) = response.results_by_topic_v3_and_below
                    codes += {one.partition_error_code for one in answered.results_by_partition}
                else:
                    codes.append(response.error_code)
            assert codes == [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE, *[ErrorCode.CONCURRENT_TRANSACTIONS] * 3]
            described = DescribeTransactionsRequest(["x"])
            (found,) = (await client.request(described, 0)).transaction_states
            assert found.transaction_state == ("PrepareCommit" if committed else "PrepareAbort")
            assert {cluster.log("wide", index).log_end_offset for index in (0, 1)} == {2 - committed}
            assert {cluster.log("wide", index).log_end_offset for index in (2, 99)} == {1 - committed}
            for _ in range(49):
                metadata, steps = finishing.pop()
                cluster._transactions._continue(metadata, steps, until=0)
            (found,) = (await client.request(described, 0)).transaction_states
            assert found.transaction_state == ("CompleteCommit" if committed else "CompleteAbort")
            assert found.topics == []
        assert {cluster.log("wide", index).log_end_offset for index in range(100)} == {2}
        assert (await client.request(end, 4)).error_code == ErrorCode.NONE

    @pytest.mark.parametrize("cluster", [{"configs": {"queued.max.request.bytes": 2**27}}], indirect=True)
    async def test_memory_is_taken_until_a_request_is_decoded(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        (server,) = cluster._servers.values()
        memory, other = server.sockets.memory, await connect()
        sent, frame = client.frame(MetadataRequest([MetadataRequestTopic(name="t" * 200) for _ in range(500)]), 13)
        size = len(frame) - 4
        await client.send_bytes(frame)
        while not server.context.long_work:  # noqa: ASYNC110 - the broker has no event for this
            await asyncio.sleep(0)
        assert memory.used == size
        answers = 0
        while memory.used >= size:
            await other.request(MetadataRequest([]), 13)
            answers += 1
        assert answers > 1
        received, _ = await client.receive(ApiKey.METADATA, 13)
        assert (received, memory.used) == (sent, 0)

    async def test_an_unreadable_request_closes_the_connection(
        self, client: RawClient, connect: Connect, caplog: pytest.LogCaptureFixture
    ) -> None:
        _, frame = client.frame(MetadataRequest([MetadataRequestTopic(name="t" * 200) for _ in range(500)]), 13)
        await client.send_bytes(frame[:-40_000] + b"\xff" * 40_000)
        assert await client.is_closed()
        assert "its request cannot be read" in caplog.text
        assert (await (await connect()).request(MetadataRequest([]), 13)).brokers

    async def test_unneeded_reads_are_dropped(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        await client.send(MetadataRequest([MetadataRequestTopic(name=f"t{number}") for number in range(5000)]), 13)
        while not cluster.topics:  # noqa: ASYNC110 - the broker has no event for this
            await asyncio.sleep(0)
        await client.close()
        other = await connect()
        (work,) = [server.context.long_work for server in cluster._servers.values()]
        while len(work):
            await other.request(MetadataRequest([]), 13)
        assert len(cluster.topics) < 5000
