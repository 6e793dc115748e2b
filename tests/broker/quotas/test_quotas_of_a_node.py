"""Quotas of a running node, over its sockets."""

from __future__ import annotations

import asyncio
import socket

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.requests.request import Request
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from aioproducer.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.raw_clients.batches import make_batch
from tests.broker.raw_clients.raw_client import Connect, RawClient
from tests.broker.requests.test_long_work import Channel
from tests.support.polling import eventually

CLIENT: dict[str, str | None] = {"client-id": "raw"}


def produce(size: int, acks: int = 1) -> ProduceRequest:
    batch = make_batch(bytes(size))
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])]
    )


def fetch(max_bytes: int = 10**6) -> FetchRequest:
    topics = [FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=10**6)])]
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=topics)


@pytest.fixture(autouse=True)
def topic(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")


class TestProduce:
    async def test_without_a_quota_nothing_is_counted(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        cluster.alter_client_quotas({"client-id": "other"}, {"producer_byte_rate": 1})
        assert (await client.request(produce(100_000), 9)).throttle_time_ms == 0
        assert not cluster.metrics().select("Produce")

    async def test_the_client_is_answered_at_once_and_not_read(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        cluster.alter_client_quotas(CLIENT, {"producer_byte_rate": 1000})
        response = await client.request(produce(10_500), 9)
        # Some 10,600 bytes: 60 ms more than the 10 s that they may take.
        assert 500 < response.throttle_time_ms < 1000
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        metrics = cluster.metrics()
        assert metrics.select("Quotas")["throttled-clients"] == 1
        throttled = metrics.select("Produce", client_id="raw")
        assert throttled["byte-rate"] > 1000
        assert throttled["throttle-time"] == response.throttle_time_ms
        assert metrics.select("RequestMetrics", request="Produce")["ThrottleTimeMs-max"] == pytest.approx(
            response.throttle_time_ms, rel=0.02
        )
        correlation_id = await client.send(MetadataRequest(), 9)
        other = await connect()  # a client of the same quota, on another connection, is not held up until it is over it
        assert (await other.request(MetadataRequest(), 9)).throttle_time_ms == 0
        assert cluster.metrics().select("Quotas")["throttled-clients"] == 1, "the first one still waits"
        cluster.alter_client_quotas(CLIENT, {"producer_byte_rate": None})
        assert (await client.receive(MetadataRequest.API_KEY, 9))[0] == correlation_id
        assert cluster.metrics().select("Quotas")["throttled-clients"] == 0

    async def test_acks_0(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        cluster.alter_client_quotas(CLIENT, {"producer_byte_rate": 1000})
        await client.send(produce(10_500, acks=0), 9)
        correlation_id = await client.send(MetadataRequest(), 9)
        await eventually(lambda: cluster.metrics().select("Quotas")["throttled-clients"])
        assert cluster.log("t").log_end_offset == 1, "the record was appended"
        assert (await client.receive(MetadataRequest.API_KEY, 9))[0] == correlation_id

    async def test_a_client_that_leaves_while_it_is_throttled(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        cluster.alter_client_quotas(CLIENT, {"producer_byte_rate": 1})
        assert (await client.request(produce(10_500), 9)).throttle_time_ms > 1000_000
        (server,) = cluster._servers.values()
        (timer,) = server.context.quotas._throttled.values()
        await client.close()
        await eventually(lambda: not cluster.metrics().select("Quotas")["throttled-clients"])
        assert timer.cancelled(), "nothing keeps the connection until its time is over"

    async def test_a_client_that_left_before_it_is_answered_is_not_throttled(self, cluster: EmbeddedCluster) -> None:
        cluster.alter_client_quotas(CLIENT, {"producer_byte_rate": 1})
        (server,) = cluster._servers.values()
        header = RequestHeader(ApiKey.PRODUCE, 9, 1, "raw")
        request = Request(header, Channel(), Channel(), bytes(10_500), quotas=server.context.quotas)
        request.abandon()
        request.no_response()
        assert request.throttle_time_ms > 1000_000
        assert cluster.metrics().select("Quotas")["throttled-clients"] == 0

    async def test_a_node_may_stop_meanwhile(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        cluster.alter_client_quotas(CLIENT, {"producer_byte_rate": 1})
        assert (await client.request(produce(10_500), 9)).throttle_time_ms > 1000_000
        await cluster.stop_node(0)
        assert await client.is_closed()


class TestFetch:
    async def test_a_throttled_one_is_empty_and_costs_nothing(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        await client.request(produce(10_000), 9)
        await client.request(produce(10_000), 9)
        cluster.alter_client_quotas(CLIENT, {"consumer_byte_rate": 1050})
        response = await client.request(fetch(), 12)
        assert response.throttle_time_ms == 0
        assert response.responses[0].partitions[0].records
        before = cluster.metrics().select("Fetch")["byte-rate"]
        response = await client.request(fetch(), 12)
        assert response.throttle_time_ms > 0
        assert response.responses == []
        assert cluster.metrics().select("Fetch")["byte-rate"] <= before

    async def test_a_session_gets_later_what_a_throttled_answer_left_out(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        def incremental(epoch: int) -> FetchRequest:
            return FetchRequest(max_wait_ms=0, session_id=session, session_epoch=epoch)

        request = fetch()
        request.session_epoch = 0
        session = (await client.request(request, 12)).session_id
        await client.request(produce(100), 9)
        cluster.log("t").delete_records(1)
        moved = [FetchTopic("t", partitions=[FetchPartition(0, fetch_offset=1, partition_max_bytes=10**6)])]
        cluster.alter_client_quotas(CLIENT, {"request_percentage": 0.000001})
        request = incremental(1)
        request.topics = moved
        response = await client.request(request, 12)
        assert response.throttle_time_ms > 0
        assert (response.session_id, response.responses) == (session, [])
        cluster.alter_client_quotas(CLIENT, {"request_percentage": None})
        other = await connect()
        response = await other.request(incremental(2), 12)
        (partition,) = response.responses[0].partitions
        assert (partition.high_watermark, partition.log_start_offset) == (1, 1)
        assert (await other.request(incremental(3), 12)).responses == []

    async def test_a_throttled_client_gets_no_session(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        cluster.alter_client_quotas(CLIENT, {"request_percentage": 0.000001})
        request = fetch()
        request.session_epoch = 0
        response = await client.request(request, 12)
        assert (response.throttle_time_ms > 0, response.session_id) == (True, 0)
        assert cluster.metrics().select("FetchSessionCache")["NumIncrementalFetchSessions"] == 0

    async def test_nothing_larger_than_the_quota_allows_at_once(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        for _ in range(5):
            await client.request(produce(1000), 9)
        cluster.alter_client_quotas(CLIENT, {"consumer_byte_rate": 250})
        response = await client.request(fetch(), 12)
        assert response.throttle_time_ms == 0
        assert 2000 < len(response.responses[0].partitions[0].records) <= 2500


class TestRequestTime:
    async def test_time_in_handlers_counts(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        cluster.alter_client_quotas(CLIENT, {"request_percentage": 0.000001})
        response = await client.request(MetadataRequest(), 9)
        assert response.throttle_time_ms == 1000, "one window at most"
        assert cluster.metrics().select("Request")["throttle-time"] == 1000


class TestControllerMutations:
    async def test_a_strict_quota(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        cluster.alter_client_quotas(CLIENT, {"controller_mutation_rate": 1})
        topics = [CreatableTopic(name, 20, 1) for name in ("a", "b")]
        response = await client.request(CreateTopicsRequest(topics, timeout_ms=1000), 7)
        assert [topic.error_code for topic in response.topics] == [
            ErrorCode.NONE,
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ]
        assert 8000 < response.throttle_time_ms <= 9000  # 20 partitions are 9 more than there may be at once
        assert {topic.name for topic in cluster.topics} == {"t", "a"}

    async def test_validation_only_uses_no_quota(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        cluster.alter_client_quotas(CLIENT, {"controller_mutation_rate": 1})
        request = CreateTopicsRequest([CreatableTopic("a", 200, 1)], timeout_ms=1000, validate_only=True)
        assert (await client.request(request, 7)).throttle_time_ms == 0

    async def test_old_versions_are_only_throttled(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        cluster.alter_client_quotas(CLIENT, {"controller_mutation_rate": 1})
        request = CreateTopicsRequest([CreatableTopic("a", 20, 1)], timeout_ms=1000)
        response = await client.request(request, 5)
        assert response.topics[0].error_code == ErrorCode.NONE
        assert 8000 < response.throttle_time_ms <= 9000

    async def test_partitions_and_deletions_count_too(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        cluster.create_topic("a", 30)
        cluster.alter_client_quotas(CLIENT, {"controller_mutation_rate": 10})
        response = await client.request(CreatePartitionsRequest([CreatePartitionsTopic("t", 91, None)], 1000), 3)
        assert (response.results[0].error_code, response.throttle_time_ms) == (ErrorCode.NONE, 0)
        response = await client.request(DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000), 5)
        assert (response.responses[0].error_code, response.throttle_time_ms) == (ErrorCode.NONE, 0)
        response = await client.request(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        assert response.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert 0 < response.throttle_time_ms <= 1000


class TestConnections:
    @pytest.mark.parametrize("cluster", [{"configs": {"max.connections.per.ip": 2}}], indirect=True)
    async def test_one_address_has_a_limited_number_of_connections(
        self, cluster: EmbeddedCluster, connect: Connect
    ) -> None:
        clients = [await connect() for _ in range(3)]
        assert await clients[2].is_closed()
        for client in clients[:2]:
            await client.request(MetadataRequest(), 9)
        cluster.alter_broker_configs({"max.connections.per.ip": 3})
        await (await connect()).request(MetadataRequest(), 9)
        cluster.alter_broker_configs({"max.connections.per.ip.overrides": "127.0.0.1:0"})
        assert await (await connect()).is_closed()

    @pytest.mark.parametrize("cluster", [{"configs": {"max.connections": 1}}], indirect=True)
    async def test_a_connection_beyond_the_limit_waits_for_a_place(
        self, cluster: EmbeddedCluster, connect: Connect
    ) -> None:
        first, second = await connect(), await connect()
        await first.request(MetadataRequest(), 9)
        correlation_id = await second.send(MetadataRequest(), 9)
        await eventually(lambda: cluster.metrics().select("socket-server-metrics")["connections-waiting"])
        await first.close()
        assert (await second.receive(MetadataRequest.API_KEY, 9))[0] == correlation_id

    @pytest.mark.parametrize("cluster", [{"configs": {"max.connections": 3}}], indirect=True)
    async def test_a_lower_limit_closes_the_least_active(self, cluster: EmbeddedCluster, connect: Connect) -> None:
        clients = [await connect() for _ in range(3)]
        for client in clients:
            await client.request(MetadataRequest(), 9)
        await clients[0].request(MetadataRequest(), 9)
        cluster.alter_broker_configs({"max.connections": 2})
        assert await clients[1].is_closed()
        for client in (clients[0], clients[2]):
            await client.request(MetadataRequest(), 9)

    async def test_the_rate_of_an_address(self, cluster: EmbeddedCluster, connect: Connect) -> None:
        cluster.alter_client_quotas({"ip": "127.0.0.1"}, {"connection_creation_rate": 1})
        clients = [await connect() for _ in range(11)]
        await clients[9].request(MetadataRequest(), 9)
        host, port = cluster.listener(0)
        loop = asyncio.get_running_loop()
        elsewhere = socket.socket()
        elsewhere.setblocking(False)
        elsewhere.bind(("127.0.0.2", 0))
        await loop.sock_connect(elsewhere, (host, port))
        other = RawClient(*await asyncio.open_connection(sock=elsewhere))
        await other.request(MetadataRequest(), 9)
        await other.close()
        metrics = cluster.metrics().select("socket-server-metrics")
        assert metrics["connections-throttled"] == 1
        assert metrics.select(ip="127.0.0.1")["connection-accept-rate"] > 0
        assert await clients[10].is_closed()
