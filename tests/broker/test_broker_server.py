"""The orderly end of a node. Its leaders move first, as in Kafka's controlled shutdown."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Any

import pytest

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker import Client, EmbeddedCluster, FatalExitError, broker_server
from aioproducer.broker.log import batch_scanner
from aioproducer.broker.log.batch_scanner import scan_all
from aioproducer.broker.log.log_validator import Scan, Wanted
from aioproducer.broker.purgatory.delayed_fetch import DelayedFetch
from aioproducer.broker.requests import long_work
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.framing import decode_response
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.records.compression import CompressionType
from aioproducer.records.record_batch import RecordBatch
from tests.support.polling import eventually

from .raw_clients.batches import make_batch
from .raw_clients.raw_client import Connect, RawClient


def produce(size: int = 10) -> ProduceRequest:
    batch = PartitionProduceData(0, make_batch(bytes(size)))
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData("t", partition_data=[batch])])


def fetch(max_wait_ms: int) -> FetchRequest:
    topics = [FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=10**7)])]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=10**7, topics=topics)


def responses(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(data[4 : 4 + size])
        assert len(found[-1]) == size, "a response was cut"
        data = data[4 + size :]
    return found


@pytest.fixture(autouse=True)
def topic(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")


class TestInGoodOrder:
    async def test_a_delayed_fetch_is_answered_when_the_node_stops(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        await client.send(fetch(max_wait_ms=10**6), 12)
        await eventually(lambda: cluster.delayed_fetches)
        await cluster.stop_node(0, clean=True)
        (answer,) = responses(await client.receive_rest())
        decoded: Any = decode_response(APIS[ApiKey.FETCH].response, 12, answer)[1]
        assert decoded.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    async def test_received_requests_are_handled_and_answered(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        await client.send_bytes(b"".join(client.frame(produce(), 9)[1] for _ in range(50)))
        await eventually(lambda: cluster.log("t").high_watermark)
        server = cluster._servers[0]
        await cluster.stop_node(0, clean=True)
        received = responses(await client.receive_rest())
        decoded: list[Any] = [decode_response(APIS[ApiKey.PRODUCE].response, 9, answer)[1] for answer in received]
        answers = [answer.responses[0].partition_responses[0] for answer in decoded]
        appended = [answer.base_offset for answer in answers if answer.error_code == ErrorCode.NONE]
        assert appended == list(range(cluster.log("t").high_watermark))
        refused = {answer.error_code for answer in answers[len(appended) :]}
        assert refused <= {ErrorCode.NOT_LEADER_OR_FOLLOWER}
        assert server.sockets.connection_count == 0

    async def test_new_connections_are_refused(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        host, port = cluster.listener(0)
        await client.send(fetch(max_wait_ms=10**6), 12)
        await eventually(lambda: cluster.delayed_fetches)
        stopping = asyncio.create_task(cluster.stop_node(0, clean=True))
        await asyncio.sleep(0)
        with pytest.raises(OSError):
            await asyncio.open_connection(host, port)
        await stopping

    async def test_a_client_that_does_not_read_is_closed_at_the_deadline(
        self, cluster: EmbeddedCluster, client: RawClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(broker_server, "_DRAIN_TIME", 0.05)
        for _ in range(8):
            await client.request(produce(10**6), 9)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await client.send(fetch(0), 12)
        (processor,) = [one for one in cluster._servers[0].sockets.processors if one.connection_count]
        await eventually(lambda: processor._sending)
        await cluster.stop_node(0, clean=True)
        assert processor.connection_count == 0


async def test_after_a_crash_nothing_is_written_any_more(cluster: EmbeddedCluster, client: RawClient) -> None:
    """The leader goes, which would be an answer for the fetch that waits."""
    await client.send(fetch(max_wait_ms=10**6), 12)
    await eventually(lambda: cluster.delayed_fetches)
    await cluster.stop_node(0)
    assert await client.receive_rest() == b""


class TestBackgroundThreads:
    """``background.threads`` bounds what is done beside the event loop: reading batches, encoding responses."""

    @pytest.mark.parametrize("cluster", [{"configs": {"background.threads": 1}}], indirect=True)
    async def test_the_number_of_threads_is_configured_and_may_grow(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun, may_end = threading.Event(), threading.Event()

        def slow(batches: Sequence[tuple[RecordBatch, Wanted | None]], *more: Any) -> list[Scan]:
            begun.set()
            may_end.wait()
            return scan_all(batches, *more)

        monkeypatch.setattr(batch_scanner, "scan_all", slow)
        monkeypatch.setattr(long_work, "FIRST_SLICE", -1.0)
        monkeypatch.setattr(long_work, "AT_ONCE", -1.0)
        try:
            packed = make_batch(bytes(3 * 2**20), codec=CompressionType.GZIP)
            data = [TopicProduceData("t", partition_data=[PartitionProduceData(0, packed)])]
            await client.send(ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), 9)
            await eventually(begun.is_set)
            other = await connect()
            await other.send(MetadataRequest(), 9)
            await turns()
            threads = cluster._servers[0].context.threads
            waiting = threads.run(lambda: None)
            await turns()
            assert not waiting.done()
            cluster.alter_broker_configs({"background.threads": 2})
            assert (await other.receive(MetadataRequest.API_KEY, 9))[1].brokers
            await waiting
        finally:
            may_end.set()
        assert (await client.receive(ProduceRequest.API_KEY, 9))[1].responses[0].partition_responses[0].error_code == 0


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Doomed:
    """An authorizer that raises this error for requests about the topic."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def start(self, node_id: int, listeners: Collection[str]) -> Mapping[str, Awaitable[object]]:
        return {}

    def authorize(self, client: Client, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        if (kind, name) == (ResourceType.TOPIC, "doom"):
            raise self.error
        return True

    def authorize_by_resource_type(self, client: Client, operation: AclOperation, kind: ResourceType) -> bool:
        return True


DOOM = MetadataRequest([MetadataRequestTopic(name="doom")])


class TestFatalExitError:
    @pytest.mark.parametrize(
        "cluster", [{"nodes": 2, "authorizer": Doomed(FatalExitError("no way on"))}], indirect=True
    )
    async def test_the_node_stops_and_the_others_do_not(
        self, cluster: EmbeddedCluster, connect: Connect, caplog: pytest.LogCaptureFixture
    ) -> None:
        cluster.create_topic("both", assignments=[(0, 1)])
        doomed, bystander, other = await connect(), await connect(), await connect(1)
        await bystander.send(fetch(max_wait_ms=10**6), 12)
        await doomed.send(DOOM, 9)
        await doomed.send(MetadataRequest(), 9)
        async with asyncio.timeout(10):
            assert await cluster.failed() == "node 0 has stopped: no way on"
        assert await doomed.is_closed()
        assert await bystander.is_closed()
        answer = await other.request(MetadataRequest(), 9)
        assert [broker.node_id for broker in answer.brokers] == [1]
        assert cluster.leader("both") == 1
        assert [record.levelname for record in caplog.records] == ["CRITICAL"]
        await cluster.start_node(0)
        assert len((await (await connect()).request(MetadataRequest(), 9)).brokers) == 2

    async def test_it_stops_the_node_of_a_request_whose_time_is_up(
        self, cluster: EmbeddedCluster, client: RawClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fatal(self: DelayedFetch) -> None:
            raise FatalExitError("no way on")

        monkeypatch.setattr(DelayedFetch, "on_complete", fatal)
        await client.send(fetch(max_wait_ms=1), 12)
        async with asyncio.timeout(10):
            assert await cluster.failed() == "node 0 has stopped: no way on"
        assert await client.is_closed()

    @pytest.mark.parametrize("cluster", [{"authorizer": Doomed(ZeroDivisionError("a bug"))}], indirect=True)
    async def test_any_other_error_costs_the_connection_alone(self, cluster: EmbeddedCluster, connect: Connect) -> None:
        doomed, other = await connect(), await connect()
        await doomed.send(DOOM, 9)
        assert await doomed.is_closed()
        assert (await other.request(MetadataRequest(), 9)).brokers
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await cluster.failed()

    async def test_a_cluster_may_be_closed_meanwhile(self) -> None:
        cluster = EmbeddedCluster(authorizer=Doomed(FatalExitError()))
        await cluster.start()
        client = await RawClient.connect(cluster.bootstrap_servers)
        await client.send(DOOM, 9)
        assert await cluster.failed() == "node 0 has stopped: FatalExitError"
        await cluster.close()
        assert await client.is_closed()
        await client.close()
