"""Requests and responses that are lost or held up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from aioproducer.broker import EmbeddedCluster, Faults, ReceivedRequest, RequestFault
from aioproducer.broker.kafka_apis import KafkaApis
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

from .raw_clients.batches import make_batch
from .raw_clients.raw_client import Connect, RawClient


class ScriptedFaults(Faults):
    """The next requests meet these."""

    def __init__(self) -> None:
        self.requests: list[RequestFault | None] = []
        self.seen: list[tuple[int, int]] = []
        self.came = asyncio.Event()

    def on_request(self, request: ReceivedRequest) -> RequestFault | None:
        self.seen.append((request.node_id, request.header.api_key))
        self.came.set()
        return self.requests.pop(0) if self.requests else None


@pytest.fixture
def faults() -> ScriptedFaults:
    return ScriptedFaults()


@pytest.fixture
async def cluster(faults: ScriptedFaults) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(faults=faults) as cluster:
        cluster.create_topic("t")
        yield cluster


def to(cluster: EmbeddedCluster, value: bytes, acks: int = -1) -> ProduceRequest:
    data = TopicProduceData("t", cluster.topic("t").id, [PartitionProduceData(0, make_batch(value))])
    return ProduceRequest(acks=acks, topic_data=[data])


def values(cluster: EmbeddedCluster) -> list[bytes | None]:
    return [record.value for record in cluster.log("t").records()]


async def test_a_request_is_lost(cluster: EmbeddedCluster, client: RawClient, faults: ScriptedFaults) -> None:
    faults.requests = [RequestFault(lost=True)]
    await client.send(to(cluster, b"a"), 13)
    assert await client.is_closed()
    assert values(cluster) == []
    assert faults.seen == [(0, ApiKey.PRODUCE)]


async def test_a_response_is_lost(cluster: EmbeddedCluster, client: RawClient, faults: ScriptedFaults) -> None:
    faults.requests = [RequestFault(unanswered=True)]
    await client.send(to(cluster, b"a"), 13)
    assert await client.is_closed()
    assert values(cluster) == [b"a"]


async def test_garbage_in_place_of_a_response(
    cluster: EmbeddedCluster, client: RawClient, faults: ScriptedFaults
) -> None:
    faults.requests = [RequestFault(garbage=b"\0\0\0\3hey")]
    await client.send(to(cluster, b"a"), 13)
    assert await client.receive_frame() == b"hey"
    assert values(cluster) == [b"a"]


async def test_a_late_response_holds_up_what_follows(
    cluster: EmbeddedCluster, client: RawClient, faults: ScriptedFaults
) -> None:
    faults.requests = [RequestFault(answered_after=0.01), None]
    first = await client.send(to(cluster, b"a"), 13)
    second = await client.send(to(cluster, b"b"), 13)
    assert (await client.receive(ApiKey.PRODUCE, 13))[0] == first
    assert (await client.receive(ApiKey.PRODUCE, 13))[0] == second
    assert values(cluster) == [b"a", b"b"]


async def test_a_request_that_waits_is_handled_though_its_client_has_gone(
    cluster: EmbeddedCluster, connect: Connect, faults: ScriptedFaults
) -> None:
    appended = asyncio.Semaphore(0)
    cluster.topic("t").partitions[0].watch(lambda _: appended.release())
    faults.requests = [RequestFault(handled_after=0.01, unanswered=True), RequestFault(handled_after=0.02)]
    for value, acks in ((b"a", -1), (b"b", 0)):
        client = await connect()
        await client.send(to(cluster, value, acks), 13)
        await client.close()
    await appended.acquire()
    await appended.acquire()
    assert values(cluster) == [b"a", b"b"]


async def test_a_request_that_waits_is_lost_with_its_node(
    cluster: EmbeddedCluster, client: RawClient, faults: ScriptedFaults
) -> None:
    faults.requests = [RequestFault(handled_after=0.01)]
    await client.send(to(cluster, b"a"), 13)
    await faults.came.wait()
    await cluster.stop_node(0)
    await cluster.start_node(0)
    assert await client.is_closed()
    again = await RawClient.connect(cluster.bootstrap_servers)
    faults.requests = [RequestFault(handled_after=0.02)]
    await again.request(to(cluster, b"b"), 13)
    await again.close()
    assert values(cluster) == [b"b"]


async def test_a_request_that_waits_and_cannot_be_read_costs_the_connection(
    client: RawClient, faults: ScriptedFaults
) -> None:
    faults.requests = [RequestFault(handled_after=0.001)]
    _, frame = client.frame(MetadataRequest(), 12)
    await client.send_bytes((len(frame) - 6).to_bytes(4, "big") + frame[4:-2])
    assert await client.is_closed()


async def test_a_request_that_waits_and_meets_a_bug_costs_the_connection(
    client: RawClient, faults: ScriptedFaults, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    faults.requests = [RequestFault(handled_after=0.001)]
    monkeypatch.setattr(KafkaApis, "handle", lambda *_: 1 // 0)
    await client.send(MetadataRequest(), 12)
    assert await client.is_closed()
    assert "ZeroDivisionError" in caplog.text


async def test_a_request_is_answered_with_an_error(client: RawClient, faults: ScriptedFaults) -> None:
    faults.requests = [RequestFault(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    assert (await client.request(request, 5)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (await client.request(request, 5)).error_code == ErrorCode.NONE


async def test_a_response_is_cut(cluster: EmbeddedCluster, client: RawClient, faults: ScriptedFaults) -> None:
    faults.requests = [RequestFault(cut_after=7)]
    await client.send(to(cluster, b"a"), 13)
    assert len(await client.receive_rest()) == 7
    assert values(cluster) == [b"a"]


async def test_a_request_is_never_answered(cluster: EmbeddedCluster, connect: Connect, faults: ScriptedFaults) -> None:
    appended = asyncio.Semaphore(0)
    cluster.topic("t").partitions[0].watch(lambda _: appended.release())
    faults.requests = [RequestFault(silent=True)]
    first, second = await connect(), await connect()
    await first.send(to(cluster, b"a"), 13)
    await appended.acquire()
    await first.send(to(cluster, b"b"), 13)
    await second.request(to(cluster, b"c"), 13)
    assert values(cluster) == [b"a", b"c"], "an unanswered client's next request is not read"


async def test_a_response_is_changed(client: RawClient, faults: ScriptedFaults) -> None:
    faults.requests = [RequestFault(edit=lambda response: setattr(response, "producer_id", 77))]
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    assert (await client.request(request, 5)).producer_id == 77


async def test_a_request_is_answered_with_a_given_response(client: RawClient, faults: ScriptedFaults) -> None:
    faults.requests = [RequestFault(response=InitProducerIdResponse(producer_id=78))]
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    assert (await client.request(request, 5)).producer_id == 78
