"""Scripts of faults, as clients of the cluster see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.find_coordinator import FindCoordinatorRequest
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.testing import ApiKey, ErrorCode, FaultScript, FaultScriptError, Hit
from tests.broker.raw_clients.batches import make_batch
from tests.broker.raw_clients.raw_client import RawClient

LED = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.fixture
def faults() -> FaultScript:
    return FaultScript(nodes=2)


@pytest.fixture
async def cluster(faults: FaultScript) -> AsyncIterator[EmbeddedCluster]:
    """Topic t with two partitions, both led by node 0."""
    async with EmbeddedCluster(2, faults=faults) as cluster:
        cluster.create_topic("t", assignments=[(0, 1), (0, 1)])
        yield cluster


@pytest.fixture
async def client(cluster: EmbeddedCluster) -> AsyncIterator[RawClient]:
    client = await RawClient.connect(cluster.bootstrap_servers.split(",")[0])
    yield client
    await client.close()


def produce(cluster: EmbeddedCluster, *partitions: int, value: bytes = b"v") -> ProduceRequest:
    data = [PartitionProduceData(index, make_batch(value)) for index in partitions]
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData("t", cluster.topic("t").id, data)])


async def codes(client: RawClient, request: ProduceRequest) -> list[int]:
    response = await client.request(request, 13)
    return [answer.error_code for topic in response.responses for answer in topic.partition_responses]


def counts(cluster: EmbeddedCluster) -> list[int]:
    return [len(list(cluster.log("t", index).records())) for index in (0, 1)]


async def test_the_second_batch_of_a_partition(
    cluster: EmbeddedCluster, client: RawClient, faults: FaultScript
) -> None:
    rule = faults.on(ApiKey.PRODUCE, partition=("t", 0), nth=2).answer(LED, appended=True)
    assert [await codes(client, produce(cluster, 1, 0)) for _ in range(3)] == [[0, 0], [0, LED], [0, 0]]
    assert counts(cluster) == [3, 3], "appended all the same"
    assert rule.hits == [Hit(0, ApiKey.PRODUCE, "raw", "t", 0)]
    assert str(rule) == "PRODUCE for t-0 number 2: answered NOT_LEADER_OR_FOLLOWER, appended"
    faults.verify()


async def test_rules_one_below_the_other_happen_one_after_the_other(
    cluster: EmbeddedCluster, client: RawClient, faults: FaultScript
) -> None:
    for code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR):
        faults.on(ApiKey.PRODUCE).answer(code)
    assert [(await codes(client, produce(cluster, 0)))[0] for _ in range(4)] == [7, 19, 56, 0]
    assert counts(cluster) == [1, 0]


async def test_so_many_times(cluster: EmbeddedCluster, client: RawClient, faults: FaultScript) -> None:
    faults.on(ApiKey.PRODUCE, nth=2, times=2).answer(LED)
    always = faults.on(ApiKey.PRODUCE, topic="t", nth=5, times=None).answer(ErrorCode.CORRUPT_MESSAGE)
    seen = [(await codes(client, produce(cluster, 0)))[0] for _ in range(7)]
    assert seen == [0, LED, LED, 0, 2, 2, 2]
    assert len(always.hits) == 3


async def test_by_node_and_by_client(cluster: EmbeddedCluster, client: RawClient, faults: FaultScript) -> None:
    at_another_node = faults.on(ApiKey.INIT_PRODUCER_ID, node=1).answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    from_another_client = faults.on(ApiKey.INIT_PRODUCER_ID, client_id="x").drop_request()
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    assert (await client.request(request, 5)).error_code == 0
    assert at_another_node.hits == from_another_client.hits == []
    other = await RawClient.connect(cluster.bootstrap_servers.split(",")[1])
    assert (await other.request(request, 5)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await other.close()
    assert [hit.node_id for hit in at_another_node.hits] == [1]


class TestAnswers:
    """The place of an error in a response."""

    async def test_the_error_of_the_whole_response(self, client: RawClient, faults: FaultScript) -> None:
        faults.on(ApiKey.INIT_PRODUCER_ID).answer(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
        refused = await client.request(request, 5)
        assert (refused.error_code, refused.producer_id) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, -1)
        faults.on(ApiKey.INIT_PRODUCER_ID).answer(ErrorCode.REQUEST_TIMED_OUT, appended=True)
        denied = await client.request(request, 5)
        assert denied.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert (await client.request(request, 5)).producer_id == denied.producer_id + 1, "an id was given out"

    async def test_one_partition_of_a_fetch(
        self, cluster: EmbeddedCluster, client: RawClient, faults: FaultScript
    ) -> None:
        faults.on(ApiKey.FETCH, partition=("t", 1)).answer(ErrorCode.OFFSET_OUT_OF_RANGE)
        topic = FetchTopic("t", cluster.topic("t").id, [FetchPartition(0), FetchPartition(1)])
        response = await client.request(FetchRequest(max_wait_ms=0, topics=[topic]), 16)
        (answered,) = response.responses
        assert [(part.partition_index, part.error_code) for part in answered.partitions] == [(0, 0), (1, 1)]

    async def test_everything_where_the_response_has_no_error(self, client: RawClient, faults: FaultScript) -> None:
        faults.on(ApiKey.LIST_OFFSETS).answer(LED)
        topic = ListOffsetsTopic("t", [ListOffsetsPartition(0), ListOffsetsPartition(1)])
        response = await client.request(ListOffsetsRequest(topics=[topic]), 7)
        assert [part.error_code for part in response.topics[0].partitions] == [LED, LED]

    @pytest.mark.parametrize("version", [3, 4])
    async def test_with_the_names_of_every_version(self, client: RawClient, faults: FaultScript, version: int) -> None:
        faults.on(ApiKey.FIND_COORDINATOR).answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        key = {"coordinator_keys": ["g"]} if version == 4 else {"key": "g"}
        response = await client.request(FindCoordinatorRequest(**key), version)
        found = response.coordinators[0] if version == 4 else response
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    async def test_of_a_topic_and_of_its_partitions(self, client: RawClient, faults: FaultScript) -> None:
        request = MetadataRequest([MetadataRequestTopic(name="t")])
        faults.on(ApiKey.METADATA, partition=("t", 1)).answer(ErrorCode.LEADER_NOT_AVAILABLE)
        (topic,) = (await client.request(request, 12)).topics
        assert [topic.error_code, *(part.error_code for part in topic.partitions)] == [0, 0, 5]

    async def test_a_request_that_is_not_carried_out_is_refused_for_everything_it_names(
        self, cluster: EmbeddedCluster, client: RawClient, faults: FaultScript
    ) -> None:
        faults.on(ApiKey.OFFSET_COMMIT).answer(ErrorCode.REBALANCE_IN_PROGRESS)
        topic = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(1, committed_offset=3)])
        request = OffsetCommitRequest("g", topics=[topic])
        (answered,) = (await client.request(request, 8)).topics
        assert [(part.partition_index, part.error_code) for part in answered.partitions] == [(1, 27)]
        assert (answered.name, cluster.committed_offsets("g")) == ("t", {})
        faults.on(ApiKey.OFFSET_COMMIT, partition=("t", 1)).answer(ErrorCode.REQUEST_TIMED_OUT, appended=True)
        (answered,) = (await client.request(request, 8)).topics
        assert answered.partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert list(cluster.committed_offsets("g").values()) == [3]


async def test_connections_requests_and_responses_that_are_lost(
    cluster: EmbeddedCluster, client: RawClient, faults: FaultScript
) -> None:
    faults.on(ApiKey.PRODUCE).drop_request()
    faults.on(ApiKey.PRODUCE).drop_response()
    faults.on(ApiKey.PRODUCE).cut_response(after=6)
    lengths = []
    for _ in range(3):
        other = await RawClient.connect(cluster.bootstrap_servers.split(",")[0])
        await other.send(produce(cluster, 0), 13)
        lengths.append(len(await other.receive_rest()))
        await other.close()
    assert lengths == [0, 0, 6]
    assert counts(cluster) == [2, 0]


async def test_connections_are_refused(cluster: EmbeddedCluster, client: RawClient, faults: FaultScript) -> None:
    rule = faults.on_connection(node=0, nth=2, times=2).refuse()
    closed = []
    for node_id in (0, 1, 0, 0, 0):
        other = await RawClient.connect(cluster.bootstrap_servers.split(",")[node_id])
        try:
            await other.request(MetadataRequest(), 12)
            closed.append(False)
        except (ConnectionError, asyncio.IncompleteReadError):
            closed.append(True)
        await other.close()
    assert closed == [False, False, True, True, False]
    assert rule.hits == [Hit(0), Hit(0)]


async def test_late_and_throttled(cluster: EmbeddedCluster, client: RawClient, faults: FaultScript) -> None:
    faults.on(ApiKey.PRODUCE).delay_request(0.001)
    faults.on(ApiKey.PRODUCE).delay_response(0.001)
    faults.on(ApiKey.PRODUCE).throttle(0.25)
    faults.on(ApiKey.PRODUCE).edit_response(lambda response: response.responses.clear())
    answers = [await client.request(produce(cluster, 0), 13) for _ in range(4)]
    assert [answer.throttle_time_ms for answer in answers] == [0, 0, 250, 0]
    assert [len(answer.responses) for answer in answers] == [1, 1, 1, 0]
    faults.verify()


async def test_garbage(client: RawClient, faults: FaultScript) -> None:
    faults.on(ApiKey.METADATA).send_bytes(b"\0\0\0\2no")
    await client.send(MetadataRequest(), 12)
    assert await client.receive_frame() == b"no"


async def test_the_cluster_changes_just_before_a_request(
    cluster: EmbeddedCluster, client: RawClient, faults: FaultScript
) -> None:
    called: list[str] = []
    faults.on(ApiKey.PRODUCE, nth=2).move_leader("t", 0, to=1)
    assert [(await codes(client, produce(cluster, 0)))[0] for _ in range(2)] == [0, LED]
    assert cluster.leader("t") == 1
    faults.on(ApiKey.METADATA).move_coordinator("g", to=1)
    faults.on(ApiKey.METADATA).set_window("t", 9)
    faults.on(ApiKey.METADATA).call(lambda: called.append("called"))
    for _ in range(3):
        await client.request(MetadataRequest(), 12)
    found = (await client.request(FindCoordinatorRequest(coordinator_keys=["g"]), 4)).coordinators[0]
    assert found.node_id == 1
    assert cluster.log("t").config.producer_state_batches_to_retain == 9
    assert called == ["called"]


async def test_a_replica_that_lags_from_a_request_on(
    cluster: EmbeddedCluster, client: RawClient, faults: FaultScript
) -> None:
    cluster.create_topic("r", assignments=[[0, 1]])
    faults.on(ApiKey.PRODUCE, nth=2).hold_replica("r", 0, node=1)
    faults.on(ApiKey.PRODUCE, nth=3).release_replica("r", 0, node=1)
    data = [TopicProduceData("r", cluster.topic("r").id, [PartitionProduceData(0, make_batch(b"v"))])]
    request = ProduceRequest(acks=-1, timeout_ms=5, topic_data=data)
    found = [await codes(client, request) for _ in range(3)]
    assert found == [[ErrorCode.NONE], [ErrorCode.REQUEST_TIMED_OUT], [ErrorCode.NONE]]
    assert cluster.log("r").high_watermark == 3


async def test_producers_that_are_forgotten(cluster: EmbeddedCluster, client: RawClient, faults: FaultScript) -> None:
    data = [PartitionProduceData(0, make_batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0))]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData("t", cluster.topic("t").id, data)])
    faults.on(ApiKey.PRODUCE, nth=3).expire_producers("t", 0, producer_id=7)
    for expected in (1, 1, 2):
        await client.request(request, 13)
        assert counts(cluster) == [expected, 0], "a batch is known again until its producer is forgotten"


def test_faults_that_never_happened_are_reported(faults: FaultScript) -> None:
    faults.verify()
    faults.on(ApiKey.PRODUCE, partition=("t", 0), nth=3).answer(LED)
    faults.on(ApiKey.FETCH, node=1, client_id="c", times=None).drop_response()
    faults.on(ApiKey.METADATA, optional=True).drop_request()
    faults.on_connection(node=1, nth=2, times=3).refuse()
    faults.on(ApiKey.HEARTBEAT)
    with pytest.raises(AssertionError) as failed:
        faults.verify()
    assert str(failed.value).splitlines() == [
        "these faults were scripted and never happened:",
        "  HEARTBEAT number 1: has no effect; call a method of the rule",
        "  a connection at node 1 numbers 2 to 4: refused (matched nothing)",
        "  FETCH from client 'c' at node 1 every time: the response dropped (matched nothing)",
        "  PRODUCE for t-0 number 3: answered NOT_LEADER_OR_FOLLOWER (matched nothing)",
    ]


def wrong(write: Any, message: str) -> Any:
    return pytest.param(write, message, id=message[:30])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        wrong(lambda on: on("Produce"), "api must be an ApiKey, such as ApiKey.PRODUCE, not 'Produce'"),
        wrong(lambda on: on(ApiKey.CREATE_DELEGATION_TOKEN), "the embedded broker has no CREATE_DELEGATION_TOKEN"),
        wrong(lambda on: on(ApiKey.PRODUCE, node=2), "there is no node 2: the cluster has nodes 0 to 1"),
        wrong(lambda on: on(ApiKey.PRODUCE, nth=0), "nth counts from 1, so it cannot be 0"),
        wrong(lambda on: on(ApiKey.PRODUCE, times=0), "times must be at least 1, or None for every time, not 0"),
        wrong(lambda on: on(ApiKey.PRODUCE, partition="t-0"), "a partition is (topic, number)"),
        wrong(lambda on: on(ApiKey.PRODUCE, topic="t", partition=("t", 0)), "leave out topic="),
        wrong(lambda on: on(ApiKey.HEARTBEAT, topic="t"), "HEARTBEAT names no topics"),
        wrong(lambda on: on(ApiKey.DELETE_TOPICS, partition=("t", 0)), "DELETE_TOPICS names no partitions"),
        wrong(lambda on: on(ApiKey.PRODUCE).answer(ErrorCode.NONE), "an answer needs an error"),
        wrong(lambda on: on(ApiKey.OFFSET_COMMIT, topic="t").answer(LED), "add appended=True"),
        wrong(lambda on: on(ApiKey.DELETE_TOPICS).answer(LED), "add appended=True"),
        wrong(lambda on: on(ApiKey.PRODUCE).delay_response(-1), "a time must be some seconds, not -1"),
        wrong(lambda on: on(ApiKey.PRODUCE).cut_response(-1), "cannot be cut after -1 bytes"),
        wrong(lambda on: on(ApiKey.PRODUCE).move_leader("t", 0, to=5), "there is no node 5"),
        wrong(lambda on: on(ApiKey.PRODUCE).set_window("t", 4), "at least 5 batches of a producer, so not 4"),
    ],
)
def test_scripts_that_make_no_sense(faults: FaultScript, write: Any, message: str) -> None:
    with pytest.raises(FaultScriptError) as failed:
        write(faults.on)
    assert message in str(failed.value)
