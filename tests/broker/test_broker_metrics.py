from __future__ import annotations

import asyncio
import json
import math
import re
from pathlib import Path

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.requests.request_metrics import HISTOGRAMS
from aioproducer.configs.config_def import LONG_MAX
from aioproducer.metrics.metric_name import MetricName
from aioproducer.metrics.sensor import Sensor
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest
from aioproducer.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.testing.simulation.listening import listen_on_network
from aioproducer.testing.simulation.loop import SimulatedClock, SimulatedLoop
from tests.support.virtual_time import World, virtual

from .raw_clients.batches import make_batch
from .raw_clients.raw_client import Connect, RawClient

DOCUMENT = Path(__file__).parents[2] / "docs" / "broker-metrics.md"


@pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
async def test_every_metric_is_of_a_node_and_all_fit_into_json(cluster: EmbeddedCluster) -> None:
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        cluster.create_topic("t")
        _ = await producer.send("t", b"value")
    found = cluster.metrics()
    assert {name.tag("node-id") for name in found} == {"node-0", "node-1", None}
    assert [name.name for name in found if name.tag("node-id") is None] == ["RequestHandlerAvgIdlePercent"]
    assert all(list(name.tags) == sorted(name.tags) for name in found), "tags are in order"
    json.dumps(found.as_dict())
    leader = found.select(node_id=f"node-{cluster.leader('t')}", request="Produce")
    assert leader["TotalTimeMs-count"] == 1
    assert leader["TotalTimeMs-p99"] >= leader["TotalTimeMs-p50"] > 0
    kept = found.as_dict()["RequestMetrics"][f"node-{cluster.leader('t')}"]
    assert kept["Produce"]["TotalTimeMs-count"] == 1
    assert kept["ApiVersions"]["TotalTimeMs-count"] >= 1


async def test_metrics_of_the_whole_node(cluster: EmbeddedCluster, client: RawClient) -> None:
    await client.request(MetadataRequest(), 9)
    found = cluster.metrics()
    for name in ("NetworkProcessorAvgIdlePercent", "BrokerRequestHandlerAvgIdlePercent"):
        assert 0 < found[name] <= 1
    assert (found["RequestQueueSize"], found["AcceptorBlockedPercent"]) == (0, 0)
    assert found[MetricName("ResponseQueueSize", "RequestChannel", (("node-id", "node-0"),))] == 0
    assert found["connection-count"] == 1
    assert (found["MemoryPoolUsed"], found["MemoryPoolAvailable"]) == (0, LONG_MAX)
    assert (found["MemoryPoolAvgDepletedPercent"], found["MemoryPoolDepletedTimeTotal"]) == (0, 0)
    assert found.select(request="Metadata", error="NONE")["ErrorsPerSec"] > 0


async def test_connections_by_the_software_of_their_clients(cluster: EmbeddedCluster, connect: Connect) -> None:
    first, second, other, silent = [await connect() for _ in range(4)]
    for client, version in ((first, "1"), (second, "1"), (other, "2")):
        await client.request(ApiVersionsRequest("test", version), 3)
    await silent.request(ApiVersionsRequest(), 2)  # the first version that names the software is 3 (KIP-511)

    def counted() -> dict[tuple[str | None, str | None], float]:
        found = cluster.metrics().select("socket-server-metrics")
        return {
            (name.tag("client-software-name"), name.tag("client-software-version")): value
            for name, value in found.items()
            if name.name == "connections"
        }

    assert counted() == {("test", "1"): 2, ("test", "2"): 1}
    await other.close()
    while len(counted()) == 2:  # noqa: ASYNC110 - the broker has no event for this
        await asyncio.sleep(0)
    assert counted() == {("test", "1"): 2}


async def test_requests_that_wait(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t")
    topic = FetchTopic("t", cluster.topic("t").id, [FetchPartition(0, partition_max_bytes=1000)])
    await client.send(FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[topic]), 13)
    while not cluster.delayed_fetches:  # noqa: ASYNC110
        await asyncio.sleep(0)
    found = cluster.metrics().select(delayedOperation="Fetch")
    assert (found["NumDelayedOperations"], found["PurgatorySize"]) == (1, 1)


async def test_bytes_and_messages_in_and_out_are_counted_by_topic(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t")
    cluster.create_topic("gone")
    batch = make_batch(b"a", b"b", b"c")
    data = [TopicProduceData(name, partition_data=[PartitionProduceData(0, batch)]) for name in ("t", "gone")]
    for acks in (1, 0):
        await client.send(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=data), 9)
    await client.receive(ProduceRequest.API_KEY, 9)
    topics = [FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=10**6)])]
    await client.request(FetchRequest(max_wait_ms=0, topics=topics), 12)
    wrong = [FetchTopic("t", partitions=[FetchPartition(0, fetch_offset=99, partition_max_bytes=10**6)])]
    await client.request(FetchRequest(max_wait_ms=0, topics=wrong), 12)
    (server,) = cluster._servers.values()
    assert {name for name, _ in server.context.topic_metrics} == {"t", "gone"}
    cluster.delete_topic("gone")
    assert {name for name, _ in server.context.topic_metrics} == {"t"}, "even if no client reads them"
    found = cluster.metrics()
    figures = {name.name: value for name, value in found.select("BrokerTopicMetrics", topic="t").items()}
    unit = figures["TotalFetchRequestsPerSec"] / 2
    assert unit > 0
    expected = {
        "MessagesInPerSec": 6,
        "BytesInPerSec": 2 * len(batch),
        "BytesOutPerSec": 2 * len(batch),
        "TotalProduceRequestsPerSec": 2,
        "TotalFetchRequestsPerSec": 2,
        "FailedProduceRequestsPerSec": 0,
        "FailedFetchRequestsPerSec": 1,
    }
    # The window of each rate begins with the first that it counts.
    assert {name: rate / unit for name, rate in figures.items()} == pytest.approx(expected, rel=0.1)
    assert not found.select("BrokerTopicMetrics", topic="gone")


async def test_each_processor_has_its_own_metrics(cluster: EmbeddedCluster) -> None:
    found = cluster.metrics()
    idle = [name.tag("networkProcessor") for name in found.select("Processor")]
    queues = [name.tag("processor") for name in found.select("RequestChannel") if name.tag("processor")]
    assert idle == queues == ["0", "1", "2"]


@pytest.mark.parametrize("cluster", [{"nodes": 2, "configs": {"num.io.threads": 2}}], indirect=True)
async def test_handlers_are_idle_by_pool_and_in_all(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-1207: a pool by its own handlers, all pools of the process by all handlers."""
    cluster.alter_broker_configs({"num.io.threads": 4}, node_id=1)
    now = 0.0
    monkeypatch.setattr(cluster._clock, "monotonic", lambda: now)
    for node_id, busy in ((0, 6.0), (1, 3.0)):
        handlers = cluster._servers[node_id].handlers
        handlers.busy = Sensor()
        handlers.busy.record(busy, 0.0)
    now = 30.0
    found = cluster.metrics().select("KafkaRequestHandlerPool")
    of_nodes = [
        cluster.metrics().select(node_id=f"node-{node_id}")["BrokerRequestHandlerAvgIdlePercent"] for node_id in (0, 1)
    ]
    assert of_nodes == pytest.approx([1 - 6 / 30 / 2, 1 - 3 / 30 / 4], rel=0.05)
    assert found["RequestHandlerAvgIdlePercent"] == pytest.approx((2 * of_nodes[0] + 4 * of_nodes[1]) / 6)
    await cluster.stop_node(0)
    found = cluster.metrics().select("KafkaRequestHandlerPool")
    assert set(found.values()) == {of_nodes[1]}, "and only of those that run"


@virtual
async def test_a_node_at_rest_is_idle(world: World) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    async with EmbeddedCluster(clock=SimulatedClock(loop, lambda: 0.0), listen=listen_on_network) as cluster:
        await asyncio.sleep(300)
        found = cluster.metrics()
        assert found["NetworkProcessorAvgIdlePercent"] == found["RequestHandlerAvgIdlePercent"] == 1


async def test_a_stopped_node_has_no_metrics(cluster: EmbeddedCluster) -> None:
    await cluster.stop_node(0)
    assert len(cluster.metrics()) == 0


@pytest.mark.parametrize(
    "cluster",
    [{"configs": {"listeners": "PLAINTEXT://:0,SASL_PLAINTEXT://:0", "sasl.enabled.mechanisms": "PLAIN"}}],
    indirect=True,
    ids=["sasl"],
)
async def test_every_metric_is_documented(cluster: EmbeddedCluster, client: RawClient) -> None:
    for quota in ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"):
        cluster.alter_client_quotas({"client-id": "raw"}, {quota: 10**6})
    cluster.alter_client_quotas({"ip": None}, {"connection_creation_rate": 10**6})
    await client.request(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 3)
    await client.request(CreateTopicsRequest([CreatableTopic("t", 1, 1)], timeout_ms=1000), 7)
    await client.request(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[]), 9)
    documented = set(re.findall(r"^\| `([^`]+)`", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE))
    names = [name for name in cluster.metrics() if name.group != "RequestMetrics"]
    found = {name.name for name in names} | set(HISTOGRAMS) | {"RequestsPerSec", "ErrorsPerSec"}
    assert {name.name.rpartition("-")[0] or name.name for name in cluster.metrics().select("RequestMetrics")} <= found
    assert found == documented
    assert not [value for name, value in cluster.metrics().items() if math.isinf(value)]
