from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import uuid4

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.handlers import produce
from aioproducer.broker.log import batch_scanner, log_validator
from aioproducer.errors import InvalidConfigurationException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.records.compression import CompressionType
from aioproducer.records.record_batch import RecordBatch

from . import NOW_MS, Connect, RawClient, make_batch

VERSIONS = range(3, 15)


@pytest.fixture(autouse=True)
def topic(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", partitions=2)


def to(cluster: EmbeddedCluster, *batches: bytes | None, topic: str = "t", acks: int = -1) -> ProduceRequest:
    """A batch for each partition from 0 on."""
    partitions = [PartitionProduceData(index, batch) for index, batch in enumerate(batches)]
    return ProduceRequest(
        acks=acks,
        topic_data=[TopicProduceData(topic, cluster.topic(topic).id, partitions)],
    )


def values(cluster: EmbeddedCluster, partition: int = 0) -> list[bytes | None]:
    return [record.value for record in cluster.log("t", partition).records()]


async def only(client: RawClient, request: ProduceRequest, version: int = 13) -> Any:
    """The answer for the one partition of a request."""
    (topic,) = (await client.request(request, version)).responses
    (partition,) = topic.partition_responses
    return partition


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
async def test_append_in_every_version(cluster: EmbeddedCluster, client: RawClient, acks: int, version: int) -> None:
    for appended in range(2):
        response = await client.request(to(cluster, make_batch(b"a", b"b"), make_batch(b"c"), acks=acks), version)
        (topic,) = response.responses
        assert (topic.name == "t") if version < 13 else (topic.topic_id == cluster.topic("t").id)
        first, second = topic.partition_responses
        assert (first.index, first.error_code, first.base_offset) == (0, ErrorCode.NONE, 2 * appended)
        assert (second.index, second.error_code, second.base_offset) == (1, ErrorCode.NONE, appended)
        assert first.log_append_time_ms == -1
        assert first.log_start_offset == (0 if version >= 5 else -1)
        assert first.error_message is None
    assert values(cluster) == [b"a", b"b"] * 2
    assert values(cluster, 1) == [b"c"] * 2


async def test_of_a_partition_named_twice_the_last_batch_counts_as_in_kafka(
    cluster: EmbeddedCluster, client: RawClient
) -> None:
    request = to(cluster, make_batch(b"a"), make_batch(b"b"))
    request.topic_data += to(cluster, make_batch(b"c")).topic_data
    (topic,) = (await client.request(request, 13)).responses
    answers = [(one.index, one.error_code, one.base_offset) for one in topic.partition_responses]
    assert answers == [(0, ErrorCode.NONE, 0), (1, ErrorCode.NONE, 0)]
    assert (values(cluster), values(cluster, 1)) == ([b"c"], [b"b"])


@pytest.mark.parametrize("codec", list(CompressionType))
async def test_every_codec(cluster: EmbeddedCluster, client: RawClient, codec: CompressionType) -> None:
    answer = await only(client, to(cluster, make_batch(b"a" * 1000, b"b", codec=codec)))
    assert answer.error_code == ErrorCode.NONE
    assert values(cluster) == [b"a" * 1000, b"b"]


@pytest.mark.parametrize("cluster", [{"configs": {"log.message.timestamp.type": "LogAppendTime"}}], indirect=True)
async def test_log_append_time(cluster: EmbeddedCluster, client: RawClient) -> None:
    answer = await only(client, to(cluster, make_batch(b"a")))
    (record,) = cluster.log("t").records()
    assert answer.log_append_time_ms == record.timestamp_ms > NOW_MS


async def test_a_retried_batch_gets_its_first_offset(cluster: EmbeddedCluster, client: RawClient) -> None:
    first = to(cluster, make_batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0))
    second = to(cluster, make_batch(b"b", producer_id=5, producer_epoch=0, base_sequence=1))
    for request, offset in [(first, 0), (second, 1), (first, 0), (second, 1)]:
        answer = await only(client, request)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, offset)
    assert values(cluster) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("header", "error"),
    [
        ({"base_sequence": 2}, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ({"base_sequence": 1, "producer_epoch": 0}, ErrorCode.INVALID_PRODUCER_EPOCH),
        ({"base_sequence": 1, "producer_epoch": 2}, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ({"base_sequence": -1}, ErrorCode.INVALID_RECORD),
    ],
)
async def test_an_idempotent_batch_out_of_turn_is_refused(
    cluster: EmbeddedCluster, client: RawClient, header: dict[str, int], error: ErrorCode
) -> None:
    before: dict[str, Any] = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 0}
    await only(client, to(cluster, make_batch(b"a", **before)))
    answer = await only(client, to(cluster, make_batch(b"b", **{**before, **header})))
    assert (answer.error_code, answer.base_offset) == (error, -1)
    assert answer.error_message
    assert values(cluster) == [b"a"]


@pytest.mark.parametrize(
    ("batch", "version", "error"),
    [
        (None, 13, ErrorCode.INVALID_RECORD),
        (b"", 13, ErrorCode.INVALID_RECORD),
        (make_batch(b"a") * 2, 13, ErrorCode.INVALID_RECORD),
        (make_batch(b"a")[:-1] + b"!", 13, ErrorCode.CORRUPT_MESSAGE),
        (make_batch(bytes(1_048_588)), 13, ErrorCode.MESSAGE_TOO_LARGE),
        (make_batch(b"a", codec=CompressionType.ZSTD), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (make_batch(b"a", base_timestamp=2**62), 13, ErrorCode.INVALID_TIMESTAMP),
    ],
    ids=["null", "empty", "two batches", "crc", "too large", "zstd", "future"],
)
async def test_an_invalid_batch_is_refused_and_not_appended(
    cluster: EmbeddedCluster, client: RawClient, batch: bytes | None, version: int, error: ErrorCode
) -> None:
    answer = await only(client, to(cluster, batch), version)
    assert (answer.error_code, answer.base_offset) == (error, -1)
    assert cluster.log("t").log_end_offset == 0


async def test_one_bad_partition_does_not_hold_back_the_others(cluster: EmbeddedCluster, client: RawClient) -> None:
    response = await client.request(to(cluster, b"bad", make_batch(b"good")), 13)
    assert [answer.error_code for answer in response.responses[0].partition_responses] == [
        ErrorCode.INVALID_RECORD,
        ErrorCode.NONE,
    ]
    assert values(cluster, 1) == [b"good"]


class TestUnknown:
    async def test_topic_name(self, client: RawClient) -> None:
        data = TopicProduceData("unknown", uuid4(), [PartitionProduceData(0, make_batch(b"a"))])
        answer = await only(client, ProduceRequest(acks=-1, topic_data=[data]), 12)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def test_topic_id(self, client: RawClient) -> None:
        data = TopicProduceData("", uuid4(), [PartitionProduceData(0, make_batch(b"a"))])
        answer = await only(client, ProduceRequest(acks=-1, topic_data=[data]))
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID

    @pytest.mark.parametrize("index", [-1, 2])
    async def test_partition(self, cluster: EmbeddedCluster, client: RawClient, index: int) -> None:
        data = TopicProduceData("", cluster.topic("t").id, [PartitionProduceData(index, make_batch(b"a"))])
        answer = await only(client, ProduceRequest(acks=-1, topic_data=[data]))
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
class TestLeader:
    @pytest.mark.parametrize("version", [9, 10, 13])
    async def test_another_node_is_named(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect, version: int
    ) -> None:
        cluster.move_leader("t", 0, 1)
        response = await client.request(to(cluster, make_batch(b"a")), version)
        (answer,) = response.responses[0].partition_responses
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        endpoints = [(node.node_id, f"{node.host}:{node.port}") for node in response.node_endpoints]
        if version >= 10:
            assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 1)
            assert endpoints == [(1, cluster.bootstrap_servers.split(",")[1])]
        else:
            assert endpoints == []
        other = await connect(1)
        assert (await only(other, to(cluster, make_batch(b"a")))).error_code == ErrorCode.NONE

    async def test_there_may_be_none(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        await cluster.stop_node(1)
        data = TopicProduceData("", cluster.topic("t").id, [PartitionProduceData(1, make_batch(b"a"))])
        response = await client.request(ProduceRequest(acks=-1, topic_data=[data]), 13)
        (answer,) = response.responses[0].partition_responses
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (-1, 1)
        assert response.node_endpoints == []

    async def test_the_next_leader_knows_a_producers_batches(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        request = to(cluster, make_batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0))
        await only(client, request)
        cluster.move_leader("t", 0, 1)
        answer = await only(await connect(1), request)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
        assert values(cluster) == [b"a"]


class TestAcks:
    @pytest.mark.parametrize("acks", [2, -2])
    async def test_acks_other_than_0_1_and_all_are_refused(
        self, cluster: EmbeddedCluster, client: RawClient, acks: int
    ) -> None:
        answer = await only(client, to(cluster, make_batch(b"a"), acks=acks))
        assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
        assert values(cluster) == []

    async def test_0_has_no_response(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        for value in (b"a", b"b"):
            await client.send(to(cluster, make_batch(value), acks=0), 13)
        # The next response is that of the next request.
        assert await client.request(MetadataRequest([]), 13)
        assert values(cluster) == [b"a", b"b"]

    async def test_0_closes_the_connection_on_an_error(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        await client.send(to(cluster, make_batch(b"a")[:-1] + b"!", acks=0), 13)
        assert await client.is_closed()

    async def test_0_is_not_lost_when_the_client_leaves_at_once(
        self, cluster: EmbeddedCluster, connect: Connect
    ) -> None:
        leaving = await connect()
        frames = [leaving.frame(to(cluster, make_batch(b"%d" % index), acks=0), 13)[1] for index in range(50)]
        await leaving.send_bytes(b"".join(frames))
        leaving.writer.write_eof()
        assert await leaving.is_closed()
        assert values(cluster) == [b"%d" % index for index in range(50)]

    @pytest.mark.parametrize("cluster", [{"nodes": 2, "configs": {"min.insync.replicas": 2}}], indirect=True)
    async def test_all_needs_replicas(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        cluster.create_topic("r", replication_factor=2, assignments=())
        cluster.move_leader("r", 0, 0)
        data = [TopicProduceData("", cluster.topic("r").id, [PartitionProduceData(0, make_batch(b"a"))])]
        assert (await only(client, ProduceRequest(acks=-1, topic_data=data))).error_code == ErrorCode.NONE
        await cluster.stop_node(1)
        answer = await only(client, ProduceRequest(acks=-1, topic_data=data))
        assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await only(client, ProduceRequest(acks=1, topic_data=data))).error_code == ErrorCode.NONE
        assert cluster.log("r").log_end_offset == 2

    @pytest.mark.parametrize("cluster", [{"configs": {"min.insync.replicas": 2}}], indirect=True)
    async def test_all_never_needs_more_replicas_than_there_are(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        assert (await only(client, to(cluster, make_batch(b"a")))).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 2, 14])
async def test_other_versions_close_the_connection(client: RawClient, version: int) -> None:
    frame = ApiKey.PRODUCE.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\1\0\0\0"
    await client.send_bytes(len(frame).to_bytes(4, "big") + frame)
    assert await client.is_closed()


class TestHowManyBatchesAreRemembered:
    """KIP-1269: ``producer.state.batches.to.retain`` of the topic, and its value in each answer."""

    @staticmethod
    def create(cluster: EmbeddedCluster, retain: int) -> None:
        configs = {"producer.state.batches.to.retain": retain}
        cluster.create_topic("wide", 1, len(cluster.bootstrap_servers.split(",")), configs=configs)

    @staticmethod
    async def produce(cluster: EmbeddedCluster, client: RawClient, sequence: int, version: int = 14) -> Any:
        batch = make_batch(b"%d" % sequence, producer_id=5, producer_epoch=0, base_sequence=sequence)
        return await only(client, to(cluster, batch, topic="wide"), version)

    async def test_five_by_default(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        assert (await only(client, to(cluster, make_batch(b"a")), 14)).producer_state_batches_to_retain == 5

    @pytest.mark.parametrize("cluster", [{"configs": {"log.producer.state.batches.to.retain": 7}}], indirect=True)
    async def test_the_brokers_config_is_the_topics_default(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        assert (await only(client, to(cluster, make_batch(b"a")), 14)).producer_state_batches_to_retain == 7
        self.create(cluster, 20)
        assert (await self.produce(cluster, client, 0)).producer_state_batches_to_retain == 20

    async def test_fewer_than_five_are_refused(self, cluster: EmbeddedCluster) -> None:
        with pytest.raises(InvalidConfigurationException, match="must be at least 5"):
            self.create(cluster, 4)

    async def test_a_limited_number_of_retries_is_recognised(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        self.create(cluster, 20)
        for sequence in range(21):
            await self.produce(cluster, client, sequence)
        for sequence in range(1, 21):
            answer = await self.produce(cluster, client, sequence)
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, sequence)
        answer = await self.produce(cluster, client, 0)
        assert answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert answer.producer_state_batches_to_retain == 20, "also in an answer with an error"
        assert cluster.log("wide").log_end_offset == 21

    async def test_answers_before_version_14_do_not_have_it(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        self.create(cluster, 20)
        assert (await self.produce(cluster, client, 0, version=13)).producer_state_batches_to_retain == 5

    @pytest.mark.parametrize("cluster", [{"nodes": 2, "old_nodes": [1]}], indirect=True)
    async def test_an_old_node_remembers_five_whatever_the_config_says(
        self, cluster: EmbeddedCluster, connect: Connect
    ) -> None:
        new, old = await connect(0), await connect(1)
        self.create(cluster, 20)
        for sequence in range(20):
            await self.produce(cluster, new, sequence)
        cluster.move_leader("wide", 0, 1)
        assert (await self.produce(cluster, old, 15, version=13)).base_offset == 15
        answer = await self.produce(cluster, old, 14, version=13)
        assert answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        cluster.move_leader("wide", 0, 0)
        assert (await self.produce(cluster, new, 0)).base_offset == 0, "the new node has followed the config all along"

    @pytest.mark.parametrize("cluster", [{"nodes": 2, "old_nodes": [1]}], indirect=True)
    async def test_only_the_leader_answers_with_it(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        self.create(cluster, 20)
        cluster.move_leader("wide", 0, 1)
        answer = await self.produce(cluster, client, 0)
        assert (answer.error_code, answer.producer_state_batches_to_retain) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 5)
        assert answer.current_leader.leader_id == 1

    @pytest.mark.parametrize("cluster", [{"nodes": 2, "old_nodes": [1]}], indirect=True)
    async def test_versions_of_old_and_new_nodes(self, connect: Connect) -> None:
        newest = []
        for node in (0, 1):
            response = await (await connect(node)).request(ApiVersionsRequest("test", "1"), 4)
            newest += [api.max_version for api in response.api_keys if api.api_key == ApiKey.PRODUCE]
        assert newest == [14, 13]


class TestElsewhere:
    """What takes long is read in a thread, and appended in slices; nothing else changes."""

    BOMB = make_batch(bytes(3 * 2**20), codec=CompressionType.ZSTD)

    @pytest.fixture(autouse=True)
    def read_by(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The threads that batches were read by."""
        threads: list[str] = []

        def noted(batch: RecordBatch, limit: int, wanted: log_validator.Wanted | None) -> log_validator.Scan:
            threads.append(threading.current_thread().name.partition("_")[0])
            return log_validator.scan(batch, limit, wanted)

        for module in (batch_scanner, produce):
            monkeypatch.setattr(module, "scan", noted)
        return threads

    async def test_a_little_to_decompress_is_decompressed_at_once(
        self, cluster: EmbeddedCluster, client: RawClient, read_by: list[str]
    ) -> None:
        assert not (await only(client, to(cluster, make_batch(b"a", codec=CompressionType.GZIP)))).error_code
        assert read_by == [threading.main_thread().name]

    @pytest.mark.parametrize(("size", "reader"), [(100, None), (2**18, "aioproducer-background-0")])
    async def test_a_large_batch_is_recompressed_in_a_thread_and_a_small_one_at_once(
        self, cluster: EmbeddedCluster, client: RawClient, read_by: list[str], size: int, reader: str | None
    ) -> None:
        cluster.alter_topic_configs("t", {"compression.type": "gzip", "compression.gzip.level": 9})
        assert not (await only(client, to(cluster, make_batch(bytes(size))))).error_code
        assert read_by == [reader or threading.main_thread().name]
        log = cluster.log("t")
        assert RecordBatch(log.read(0, 2**20)[0]).codec is CompressionType.GZIP
        assert values(cluster) == [bytes(size)]
        assert log.size_in_bytes < size + 61

    async def test_more_is_decompressed_in_a_thread(
        self, cluster: EmbeddedCluster, client: RawClient, read_by: list[str]
    ) -> None:
        wrong = make_batch(bytes(3 * 2**20), b"b", codec=CompressionType.ZSTD, count=3)
        (topic,) = (await client.request(to(cluster, self.BOMB, wrong), 13)).responses
        answers = [(one.error_code, one.base_offset) for one in topic.partition_responses]
        assert answers == [(ErrorCode.NONE, 0), (ErrorCode.INVALID_RECORD, -1)]
        assert read_by == [threading.main_thread().name, "aioproducer-background-0", "aioproducer-background-0"]
        assert values(cluster) == [bytes(3 * 2**20)]

    async def test_too_large_for_the_topic_is_not_read(
        self, cluster: EmbeddedCluster, client: RawClient, read_by: list[str]
    ) -> None:
        answer = await only(client, to(cluster, make_batch(bytes(5 * 2**20))))
        assert (answer.error_code, read_by) == (ErrorCode.MESSAGE_TOO_LARGE, [])

    async def test_a_client_that_left_has_its_requests_appended_in_their_order(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        for batch in (self.BOMB, make_batch(b"b"), self.BOMB, make_batch(b"c")):
            await client.send(to(cluster, batch, acks=0), 13)
        await client.close()
        while cluster.log("t").log_end_offset < 4:  # noqa: ASYNC110 - the broker has no event for this
            await asyncio.sleep(0.001)
        assert [len(value or b"") for value in values(cluster)] == [3 * 2**20, 1, 3 * 2**20, 1]

    async def test_many_partitions(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        cluster.create_topic("wide", partitions=100)
        batches = [make_batch(b"%d" % index) for index in range(100)]
        for base_offset in range(2):
            (topic,) = (await client.request(to(cluster, *batches, topic="wide"), 13)).responses
            assert [one.base_offset for one in topic.partition_responses] == [base_offset] * 100
        for index in range(100):
            assert [record.value for record in cluster.log("wide", index).records()] == [b"%d" % index] * 2

    async def test_the_node_stops_meanwhile(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        await client.send(to(cluster, *[self.BOMB] * 2), 13)
        await cluster.stop_node(0)
        assert await client.is_closed()
