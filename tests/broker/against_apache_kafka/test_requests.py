"""The embedded broker and Apache Kafka, with the same requests (see ``kafka_comparison.py``)."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from aioproducer.broker.configs.broker_config import BROKER_CONFIGS
from aioproducer.broker.configs.topic_config import TOPIC_CONFIGS_WITHOUT_EFFECT
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest
from aioproducer.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from aioproducer.protocol.messages.delete_groups import DeleteGroupsRequest
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from aioproducer.protocol.messages.describe_groups import DescribeGroupsRequest
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.find_coordinator import FindCoordinatorRequest
from aioproducer.protocol.messages.heartbeat import HeartbeatRequest
from aioproducer.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from aioproducer.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from aioproducer.records.compression import CompressionType, compress
from aioproducer.records.crc32c import crc32c
from aioproducer.records.record_batch import read_batches
from aioproducer.records.record_batch_header import encode_batch_header
from tests.broker.raw_clients.batches import NOW_MS, make_batch, make_body

from .kafka_comparison import ComparedBroker, same

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]

NO_ID = UUID(int=12345)


def with_field(batch: bytes, offset: int, format: str, value: int) -> bytes:
    data = bytearray(batch)
    struct.pack_into(format, data, offset, value)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


def with_body(body: bytes, count: int, codec: CompressionType = CompressionType.NONE) -> bytes:
    packed = compress(codec, body)
    header = encode_batch_header(packed, count=count, base_timestamp=NOW_MS, max_timestamp=NOW_MS, codec=codec)
    return header + packed


def with_magic(batch: bytes, magic: int) -> bytes:
    return batch[:16] + bytes([magic]) + batch[17:]


IDEMPOTENT: dict[str, Any] = {"producer_id": 4242, "producer_epoch": 0, "base_sequence": 0}

BATCHES: dict[str, bytes] = {
    "good": make_batch(b"a", b"b"),
    "empty": b"",
    "short": b"abc",
    "cut": make_batch(b"a")[:-1],
    "followed by a few bytes": make_batch(b"a") + b"\0\0\0",
    "two": make_batch(b"a") * 2,
    "crc": make_batch(b"a")[:-1] + b"!",
    "base offset": make_batch(b"a", base_offset=3),
    "count above": make_batch(b"a", count=2),
    "count below": make_batch(b"a", b"b", count=1),
    "no records": make_batch(count=0),
    "negative count": with_field(make_batch(b"a"), 57, ">i", -1),
    "offsets and count": with_field(make_batch(b"a", b"b"), 23, ">i", 7),
    "negative offsets": with_field(make_batch(b"a"), 23, ">i", -5),
    "control": make_batch(b"a", control=True),
    "no sequence": make_batch(b"a", **{**IDEMPOTENT, "base_sequence": -1}),
    "magic 0": with_magic(make_batch(b"a"), 0),
    "magic 1": with_magic(make_batch(b"a"), 1),
    "magic 3": with_magic(make_batch(b"a"), 3),
    "negative length": make_batch(b"a")[:8] + b"\xff\xff\xff\xff" + make_batch(b"a")[12:],
    "small length": make_batch(b"a")[:8] + b"\0\0\0\x05" + make_batch(b"a")[12:],
    "large length": make_batch(b"a")[:8] + b"\x7f\0\0\0" + make_batch(b"a")[12:],
    "too large": make_batch(bytes(1_048_588)),
    "future": make_batch(b"a", base_timestamp=2**45, max_timestamp=2**45),
    "log append time": make_batch(b"a", log_append_time=True),
    "record cut": with_body(make_body(b"a", b"b")[:-1], 2),
    "byte after the records": with_body(make_body(b"a", b"b") + b"\0", 2),
    "negative record size": with_body(b"\x01" + make_body(b"a"), 2),
    **{f"{codec}": make_batch(b"a" * 1000, b"b", codec=codec) for codec in CompressionType},
    "negative size in gzip": with_body(b"\x01" + make_body(b"a"), 2, CompressionType.GZIP),
    "record cut in zstd": with_body(make_body(b"a", b"b")[:-1], 2, CompressionType.ZSTD),
}


@pytest.mark.parametrize("kind", BATCHES)
async def test_batches(pair: tuple[ComparedBroker, ComparedBroker], kind: str) -> None:
    topic = "batches-" + kind.replace(" ", "-")

    async def case(broker: ComparedBroker) -> Any:
        await broker.create(topic)
        first = await broker.produce(topic, BATCHES[kind])
        return [first, await broker.list_offset(topic, -1), await broker.produce(topic, make_batch(b"next"))]

    await same(pair, case)


@pytest.mark.parametrize("version", range(3, 13))
async def test_zstd_by_version(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    async def case(broker: ComparedBroker) -> Any:
        topic = f"zstd-{version}"
        await broker.create(topic)
        return [await broker.produce(topic, make_batch(b"a", codec=CompressionType.ZSTD), version)]

    await same(pair, case)


@pytest.mark.parametrize("acks", [0x7FFF, 2, 1, -1, -2])
async def test_acks(pair: tuple[ComparedBroker, ComparedBroker], acks: int) -> None:
    async def case(broker: ComparedBroker) -> Any:
        topic = f"acks-{acks}"
        await broker.create(topic)
        return [await broker.produce(topic, make_batch(b"a"), acks=acks), await broker.list_offset(topic, -1)]

    await same(pair, case)


async def test_idempotent_sequences(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    """Each step: producer, epoch, first sequence, records."""
    steps = [
        (1, 0, 0, 3),
        (1, 0, 3, 2),
        (1, 0, 3, 2),
        (1, 0, 0, 3),
        (1, 0, 0, 2),
        (1, 0, 1, 2),
        (1, 0, 7, 1),
        (1, 0, 5, 1),
        *((1, 0, sequence, 1) for sequence in range(6, 12)),
        (1, 0, 0, 3),  # older than the batches that are kept
        (1, 0, 5, 1),
        (1, 0, 7, 1),
        (1, 2, 12, 1),
        (1, 1, 0, 1),
        (1, 0, 12, 1),
        (1, 0, 7, 1),  # a duplicate of an older epoch
        (1, 1, 0, 1),
        (2, 5, 77, 1),  # an unknown producer may begin anywhere
        (2, 5, 79, 1),
        (2, 5, 78, 1),
        (3, 0, 2**31 - 2, 2),
        (3, 0, 0, 1),
        (3, 0, 2**31 - 2, 2),
        (4, 0, 2**31 - 2, 5),
        (4, 0, 3, 1),
        (4, 0, 2**31 - 2, 5),
    ]

    async def case(broker: ComparedBroker) -> Any:
        await broker.create("sequences")
        answers = []
        for producer, epoch, sequence, count in steps:
            header: dict[str, Any] = {
                "producer_id": 1000 + producer,
                "producer_epoch": epoch,
                "base_sequence": sequence,
            }
            answers.append(
                (
                    (producer, epoch, sequence, count),
                    await broker.produce("sequences", make_batch(*[b"x"] * count, **header)),
                )
            )
        return answers

    await same(pair, case)


async def test_log_append_time(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.create("stamped", message_timestamp_type="LogAppendTime")
        error, offset, first = await broker.produce("stamped", make_batch(b"a", **IDEMPOTENT))
        again = await broker.produce("stamped", make_batch(b"a", **IDEMPOTENT))
        refused = await broker.produce("stamped", make_batch(b"a", log_append_time=True))
        future = await broker.produce("stamped", make_batch(b"a", max_timestamp=2**45))
        fetched = await broker.fetch("stamped", 0)
        times = [record.timestamp_ms == first for record in fetched[-1][:1]]
        return [error, offset, first > NOW_MS, again[:2], again[2] == first, refused, future[:2], times]

    await same(pair, case)


async def test_small_batches_only(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.create("small", max_message_bytes="100")
        return [await broker.produce("small", make_batch(bytes(size))) for size in range(20, 60)]

    answers = await same(pair, case)
    assert {answer[0] for answer in answers} == {"NONE", "MESSAGE_TOO_LARGE"}


async def test_unknown_topics_and_partitions(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.create("known")
        by_id = TopicProduceData(topic_id=NO_ID, partition_data=[PartitionProduceData(0, make_batch(b"a"))])
        response = await broker.client.request(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[by_id]), 13)
        return [
            await broker.produce("unknown-topic", make_batch(b"a")),
            await broker.produce("known", make_batch(b"a"), index=1),
            await broker.produce("known", make_batch(b"a"), index=-1),
            response.responses[0].partition_responses[0].error_code,
            await broker.list_offset("unknown-topic", -1),
            await broker.list_offset("known", -1, index=1),
            await broker.fetch("unknown-topic", 0),
            await broker.fetch("known", 0, index=1),
            await broker.fetch("", 0, version=13, topic_id=NO_ID),
        ]

    await same(pair, case)


async def test_offsets(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.create("offsets")
        empty = [await broker.list_offset("offsets", timestamp) for timestamp in (-1, -2, -3, -4, 0)]
        for first, count in ((1000, 3), (500, 2), (2000, 1)):
            batch = make_batch(*[b"x"] * count, base_timestamp=first, max_timestamp=first + count - 1)
            await broker.produce("offsets", batch)
        found = [
            (timestamp, await broker.list_offset("offsets", timestamp))
            for timestamp in (-1, -2, -3, -4, -5, 0, 1, 500, 501, 1000, 1001, 1002, 1003, 2000, 2001)
        ]
        epochs = [await broker.list_offset("offsets", -1, epoch=epoch) for epoch in (-1, 0, 1)]
        return [empty, found, epochs]

    await same(pair, case)


@pytest.mark.parametrize("version", range(1, 12))
async def test_special_timestamps_in_every_version(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    topic = f"timestamps-{version}"

    async def case(broker: ComparedBroker) -> Any:
        await broker.create(topic)
        for first, count in ((1000, 3), (500, 2), (2000, 1)):
            batch = make_batch(*[b"x"] * count, base_timestamp=first, max_timestamp=first + count - 1)
            await broker.produce(topic, batch)
        return [(of, await broker.list_offset(topic, of, version)) for of in (-1, -2, -3, -4, -5, -6, -7)]

    await same(pair, case)


async def test_fetches(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.create("fetches")
        empty = await broker.fetch("fetches", 0)
        for first in (1000, 2000, 3000):
            await broker.produce("fetches", make_batch(b"a", b"b", base_timestamp=first, max_timestamp=first + 1))
        return [
            empty,
            [await broker.fetch("fetches", offset) for offset in (-1, 0, 1, 2, 5, 6, 7)],
            [await broker.fetch("fetches", 0, epoch=epoch) for epoch in (-1, 0, 1)],
            [await broker.fetch("fetches", 2, size=size) for size in (0, 1, len(make_batch(b"a", b"b")))],
            await broker.fetch("fetches", 0, session_id=77, session_epoch=5),
            await broker.fetch("fetches", 0, session_id=0, session_epoch=5),
        ]

    await same(pair, case)


@pytest.mark.parametrize("version", range(4, 19))
async def test_a_fetch_in_every_version(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    topic = f"fetched-{version}"

    async def case(broker: ComparedBroker) -> Any:
        topic_id = await broker.create(topic)
        for first in (1000, 2000, 3000):
            await broker.produce(topic, make_batch(b"a", b"b", base_timestamp=first, max_timestamp=first + 1))
        if version < 13:
            return [await broker.fetch(topic, 0, version)]
        return [await broker.fetch("", 0, version, topic_id=topic_id)]

    await same(pair, case)


async def test_leader_epochs(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.create("epochs")
        empty = [await broker.end_of_epoch("epochs", epoch) for epoch in (-1, 0, 1)]
        await broker.produce("epochs", make_batch(b"a", b"b"))
        return [
            empty,
            [await broker.end_of_epoch("epochs", epoch) for epoch in (-1, 0, 1)],
            [await broker.end_of_epoch("epochs", 0, current=current) for current in (-1, 0, 1)],
            await broker.end_of_epoch("no-such-topic", 0),
            [await broker.fetch("epochs", offset, fetched=epoch) for epoch in (-1, 0, 1) for offset in (0, 1, 2, 3)],
        ]

    await same(pair, case)


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_the_end_of_an_epoch_in_every_version(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    topic = f"epochs-{version}"

    async def case(broker: ComparedBroker) -> Any:
        await broker.create(topic)
        await broker.produce(topic, make_batch(b"a", b"b"))
        return [await broker.end_of_epoch(topic, epoch, version) for epoch in (-1, 0, 1)]

    await same(pair, case)


async def test_metadata(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.create("metadata")
        names = ["metadata", "unknown-topic", "no/name", "", "x" * 250, "."]
        answers: list[Any] = []
        for version in range(14):
            topics = [MetadataRequestTopic(name=name) for name in names]
            response = await broker.client.request(
                MetadataRequest(topics, allow_auto_topic_creation=version < 4), version
            )
            if version < 4:  # creates unknown-topic, in Kafka's own time
                if version == 0:
                    answers.append(
                        [(topic.error_code, topic.partitions) for topic in response.topics if topic.name == names[1]]
                    )
                continue
            answers.append(
                {(topic.name, topic.error_code) for topic in response.topics if topic.name != "unknown-topic"}
            )
        operations = MetadataRequest(
            [MetadataRequestTopic(name="metadata")],
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )
        response = await broker.client.request(operations, 8)
        answers.append((response.cluster_authorized_operations, response.topics[0].topic_authorized_operations))
        by_id = await broker.client.request(MetadataRequest([MetadataRequestTopic(NO_ID, None)]), 12)
        answers.append([(topic.name, topic.topic_id, topic.error_code) for topic in by_id.topics])
        unwanted = MetadataRequest([MetadataRequestTopic(name="never-seen")], allow_auto_topic_creation=False)
        missing = (await broker.client.request(unwanted, 12)).topics
        answers.append([(topic.name, topic.topic_id, topic.error_code) for topic in missing])
        nothing = await broker.client.request(MetadataRequest([]), 12)
        answers.append((nothing.topics, len(nothing.brokers), len(nothing.cluster_id)))
        return answers

    await same(pair, case)


@pytest.mark.parametrize(
    "topic",
    [
        CreatableTopic("there", 1, 1),
        CreatableTopic("no/name", 1, 1),
        CreatableTopic("", 1, 1),
        CreatableTopic("colli.sion", 1, 1),
        CreatableTopic("zero", 0, 1),
        CreatableTopic("minus", -2, 1),
        CreatableTopic("no-replicas", 1, 0),
        CreatableTopic("replicas", 1, 3),
        CreatableTopic("defaults", -1, -1),
        CreatableTopic("config", 1, 1, configs=[CreatableTopicConfig("no.such.config", "1")]),
        CreatableTopic("config", 1, 1, configs=[CreatableTopicConfig("max_message_bytes", "1")]),
        CreatableTopic("config", 1, 1, configs=[CreatableTopicConfig("max.message.bytes", "many")]),
        CreatableTopic("config", 1, 1, configs=[CreatableTopicConfig("max.message.bytes", "-1")]),
        CreatableTopic("config", 1, 1, configs=[CreatableTopicConfig("max.message.bytes", None)]),
        CreatableTopic("config", 1, 1, configs=[CreatableTopicConfig("min.insync.replicas", "0")]),
        CreatableTopic("config", 1, 1, configs=[CreatableTopicConfig("message.timestamp.type", "Never")]),
        CreatableTopic("config", 1, 1, configs=[CreatableTopicConfig("segment.bytes", "5")]),
        CreatableTopic("both", 1, 1, [CreatableReplicaAssignment(0, [0])]),
        CreatableTopic("not-from-zero", -1, -1, [CreatableReplicaAssignment(1, [1])]),
        CreatableTopic("no-node", -1, -1, [CreatableReplicaAssignment(0, [99])]),
        CreatableTopic("twice", -1, -1, [CreatableReplicaAssignment(0, [1, 1])]),
        CreatableTopic("nobody", -1, -1, [CreatableReplicaAssignment(0, [])]),
    ],
    ids=str,
)
async def test_create_topics(pair: tuple[ComparedBroker, ComparedBroker], topic: CreatableTopic) -> None:
    async def case(broker: ComparedBroker) -> Any:
        existing = [CreatableTopic(name, 1, 1) for name in ("there", "colli_sion")]
        await broker.client.request(CreateTopicsRequest(existing), 7)
        response = await broker.client.request(CreateTopicsRequest([topic], validate_only=True), 7)
        return [
            (result.name, ErrorCode(result.error_code).name, result.num_partitions, result.replication_factor)
            for result in response.topics
        ]

    await same(pair, case)


async def test_create_a_topic_twice_in_one_request(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        request = CreateTopicsRequest([CreatableTopic("same", 1, 1), CreatableTopic("same", 2, 1)])
        return [(result.name, result.error_code) for result in (await broker.client.request(request, 7)).topics]

    await same(pair, case)


async def test_delete_topics(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        topic_id = await broker.create("deleted")
        answers = []
        for wanted in (
            DeleteTopicState("not-there"),
            DeleteTopicState(None, NO_ID),
            DeleteTopicState("deleted", topic_id),
            DeleteTopicState(None, topic_id),
        ):
            response = await broker.client.request(DeleteTopicsRequest([wanted], timeout_ms=5000), 6)
            answers += [(result.name, result.topic_id == topic_id, result.error_code) for result in response.responses]
        return answers

    await same(pair, case)


@pytest.mark.parametrize("version", range(6))
async def test_producer_ids(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    async def case(broker: ComparedBroker) -> Any:
        request = InitProducerIdRequest(None, 2**31 - 1)
        response = await broker.client.request(request, version)
        while response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # Kafka gets ids from its controller
            response = await broker.client.request(request, version)
        return [(response.error_code, response.producer_id >= 0, response.producer_epoch)]

    await same(pair, case)


async def test_coordinators_of_another_kind(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        response = await broker.client.request(FindCoordinatorRequest(key_type=7, coordinator_keys=["a"]), 6)
        return [(found.key, found.error_code) for found in response.coordinators]

    await same(pair, case)


async def test_api_versions(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        frame = b"\x00\x12\x00\x63\x00\x00\x00\x07\x00\x03new\x00" + b"whatever comes with version 99"
        await broker.client.send_bytes(len(frame).to_bytes(4, "big") + frame)
        answers: list[Any] = [await broker.client.receive(ApiKey.API_VERSIONS, 0)]
        for name in ("good", "", "b a d", "-bad", "bad."):
            response = await broker.client.request(ApiVersionsRequest(name, "1"), 3)
            answers.append((response.error_code, bool(response.api_keys)))
        response = await broker.client.request(ApiVersionsRequest("name", "1"), 4)
        answers.append(
            [
                api
                for api in response.api_keys
                if api.api_key
                in (
                    ApiKey.PRODUCE,
                    ApiKey.FETCH,
                    ApiKey.METADATA,
                    ApiKey.LIST_OFFSETS,
                    ApiKey.CREATE_TOPICS,
                    ApiKey.DELETE_TOPICS,
                    ApiKey.API_VERSIONS,
                    ApiKey.FIND_COORDINATOR,
                    ApiKey.OFFSET_COMMIT,
                    ApiKey.OFFSET_FETCH,
                    ApiKey.ADD_OFFSETS_TO_TXN,
                    ApiKey.END_TXN,
                    ApiKey.TXN_OFFSET_COMMIT,
                )
            ]
        )
        return answers

    await same(pair, case)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x15\x03\x01\x00\x02",
        b"\0\0\0\0",
        b"\0\0\0\x02\0\0",
        b"\0\0\0\x0a\x00\x63\x00\x01\x00\x00\x00\x01\xff\xff",
        b"\0\0\0\x0b\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff",
        b"\0\0\0\x0a\x00\x03\x00\x63\x00\x00\x00\x01\xff\xff",
        b"\0\0\0\x0b\x00\x03\x00\x01\x00\x00\x00\x01\xff\xff\x00",
        b"\0\0\0\x0e\x00\x03\x00\x01\x00\x00\x00\x01\xff\xff\x7f\xff\xff\xff",
    ],
    ids=[
        "-1",
        "2**31-1",
        "HTTP",
        "TLS alert",
        "0",
        "2",
        "unknown API",
        "Produce 0",
        "Metadata 99",
        "cut",
        "endless array",
    ],
)
async def test_bytes_that_close_the_connection(pair: tuple[ComparedBroker, ComparedBroker], data: bytes) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.client.send_bytes(data)
        return [await broker.client.is_closed()]

    assert await same(pair, case) == [True]


TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
NOT_COMPARED = {
    "min.insync.replicas",
    "group.initial.rebalance.delay.ms",
    "log.flush.policy",
    "log.flush.interval.ms",
    "socket.request.receive.timeout.ms",
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "config.providers",
    "sasl.enabled.mechanisms",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.engine.factory.class",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
    "group.max.size",
    "super.users",
    "allow.everyone.if.no.acl.found",
    "socket.listen.backlog.size",
    "unstable.api.versions.enable",
}
"""The cluster of Kafka 4 has a dynamic default of the first (KIP-966); the second is set for tests. Kafka has neither
the third nor the fifth, and no default for the fourth. The listeners of the two are not the same. Kafka's
defaults of the mechanisms and of the types of stores are Java's, and it can change what is of TLS while it runs.
It replaces references in dynamic configs, too. It has no limit for the size of a group, leaves the next two to its
authorizer, has a shorter backlog, and does not describe the last one."""


async def described(broker: ComparedBroker, kind: int, name: str, *keys: str) -> Any:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, list(keys) or None)], include_synonyms=True)
    (result,) = (await broker.client.request(request, 4)).results
    configs = {
        config.name: (
            config.value,
            config.read_only,
            config.config_source,
            config.is_sensitive,
            config.config_type,
            [
                (synonym.name, synonym.value, synonym.source)
                for synonym in config.synonyms
                if synonym.name in BROKER_CONFIGS or synonym.source == 1
            ],
        )
        for config in result.configs
        if config.name not in NOT_COMPARED and (kind == TOPIC_RESOURCE or config.name in BROKER_CONFIGS)
    }
    return ErrorCode(result.error_code).name, configs


async def test_describe_configs(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.create("described", cleanup_policy="compact", max_message_bytes=" 5000")
        metadata = await broker.client.request(MetadataRequest(topics=[]), 12)
        (node,) = metadata.brokers
        return [
            await described(broker, TOPIC_RESOURCE, "described"),
            await described(broker, TOPIC_RESOURCE, "described", "retention.ms", "no.such"),
            await described(broker, TOPIC_RESOURCE, "not-there"),
            await described(broker, TOPIC_RESOURCE, "no/name"),
            await described(broker, BROKER_RESOURCE, str(node.node_id)),
            await described(broker, BROKER_RESOURCE, ""),
            await described(broker, BROKER_RESOURCE, str(node.node_id + 1)),
            await described(broker, BROKER_RESOURCE, "x"),
        ]

    answers = await same(pair, case)
    assert set(answers[0][1]) > TOPIC_CONFIGS_WITHOUT_EFFECT


ConfigChanges = tuple[int, str, list[tuple[str, int, str | None]]]
"""Kind and name of a resource; of each change the name of the config, the operation and the value."""


async def altered(broker: ComparedBroker, *resources: ConfigChanges) -> Any:
    wanted = [
        AlterConfigsResource(kind, name, [AlterableConfig(*change) for change in changes])
        for kind, name, changes in resources
    ]
    response = await broker.client.request(IncrementalAlterConfigsRequest(wanted), 1)
    return sorted((one.resource_type, one.resource_name, ErrorCode(one.error_code).name) for one in response.responses)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("altered", [("retention.ms", 0, "5"), ("max.message.bytes", 0, "6000")]),
        ("altered", [("retention.ms", 0, "abc")]),
        ("altered", [("retention.ms", 0, "-2")]),
        ("altered", [("retention.ms", 2, "5")]),
        ("altered", [("retention.ms", 0, None)]),
        ("altered", [("retention.ms", 0, "5"), ("retention.ms", 1, None)]),
        ("altered", [("no.such", 0, "5")]),
        ("altered", [("no.such", 1, None)]),
        ("altered", [("cleanup.policy", 2, "compact")]),
        ("altered", [("cleanup.policy", 3, "delete")]),
        ("altered", [("cleanup.policy", 2, "x")]),
        ("altered", [("max.message.bytes", 1, None)]),
        ("altered", [("min.cleanable.dirty.ratio", 0, "1.5")]),
        ("altered", [("min.cleanable.dirty.ratio", 0, ".25")]),
        ("altered", [("compression.type", 0, "best")]),
        ("not-there", [("retention.ms", 0, "5")]),
        ("no/name", [("retention.ms", 0, "5")]),
        ("", [("retention.ms", 0, "5")]),
    ],
    ids=str,
)
async def test_alter_topic_configs(
    pair: tuple[ComparedBroker, ComparedBroker],
    request: pytest.FixtureRequest,
    name: str,
    changes: list[tuple[str, int, str | None]],
) -> None:
    topic = f"altered-{abs(hash(request.node.name))}"

    async def case(broker: ComparedBroker) -> Any:
        await broker.create(topic, max_message_bytes="5000")
        asked = topic if name == "altered" else name
        # Kafka's broker hears of configs and their changes from its controller a moment later; ours has them already.
        while (before := await described(broker, TOPIC_RESOURCE, topic))[1]["max.message.bytes"][0] != "5000":
            pass
        answers = await altered(broker, (TOPIC_RESOURCE, asked, changes))
        configs = await described(broker, TOPIC_RESOURCE, topic)
        changed = answers[0][2] == "NONE" and any(config in before[1] for config, _, _ in changes)
        while changed and configs == before:
            configs = await described(broker, TOPIC_RESOURCE, topic)
        return answers, configs

    await same(pair, case)


async def test_alter_broker_configs(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        metadata = await broker.client.request(MetadataRequest(topics=[]), 12)
        own = str(metadata.brokers[0].node_id)
        other = str(metadata.brokers[0].node_id + 1)
        answers = []
        for name, config, operation, value in (
            ("", "num.partitions", 0, "3"),
            (own, "num.partitions", 0, "3"),
            (own, "log.retention.bytes", 0, "x"),
            (other, "log.retention.bytes", 0, "5"),
            ("x", "log.retention.bytes", 0, "5"),
            ("", "log.retention.bytes", 2, "5"),
            (own, "log.retention.bytes", 0, "700000"),
            ("", "log.retention.bytes", 0, "600000"),
        ):
            ((_, asked, code),) = await altered(broker, (BROKER_RESOURCE, name, [(config, operation, value)]))
            answers.append(("own" if asked == own else "other" if asked == other else asked, code))
        configs = await described(broker, BROKER_RESOURCE, own, "log.retention.bytes")
        while len(configs[1]["log.retention.bytes"][-1]) < 3:  # one synonym for each change, and the default
            configs = await described(broker, BROKER_RESOURCE, own, "log.retention.bytes")
        answers.append(configs)
        await broker.create("under-dynamic-configs")
        answers.append(await described(broker, TOPIC_RESOURCE, "under-dynamic-configs", "retention.bytes"))
        for name in (own, ""):
            await altered(broker, (BROKER_RESOURCE, name, [("log.retention.bytes", 1, None)]))
        while len(configs[1]["log.retention.bytes"][-1]) > 1:  # leftovers must not affect the next test
            configs = await described(broker, BROKER_RESOURCE, own, "log.retention.bytes")
        return answers

    await same(pair, case)


async def test_a_listeners_own_configs(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    connections, threads = "listener.name.plaintext.max.connections", "listener.name.plaintext.num.network.threads"

    async def case(broker: ComparedBroker) -> Any:
        metadata = await broker.client.request(MetadataRequest(topics=[]), 12)
        own = str(metadata.brokers[0].node_id)
        codes = []
        for node, name, value in (
            (own, connections, "many"),
            (own, threads, "7"),
            (own, threads, "4"),
            (own, connections, "1000"),
            ("", connections, "2000"),
        ):
            ((_, _, code),) = await altered(broker, (BROKER_RESOURCE, node, [(name, 0, value)]))
            codes.append(code)
        configs: list[Any] = []
        while [config.value for config in configs] != ["1000", "4"] or len(configs[0].synonyms) < 3:
            request = DescribeConfigsRequest(
                [DescribeConfigsResource(BROKER_RESOURCE, own, [connections, threads])], include_synonyms=True
            )
            (result,) = (await broker.client.request(request, 4)).results
            configs = sorted(result.configs, key=lambda config: str(config.name))
        for node, name in ((own, connections), (own, threads), ("", connections)):
            await altered(broker, (BROKER_RESOURCE, node, [(name, 1, None)]))
        return codes, configs

    await same(pair, case)


async def test_a_resource_twice_in_one_request(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        change: ConfigChanges = TOPIC_RESOURCE, "twice", [("retention.ms", 0, "5")]
        return await altered(broker, change, change)

    await same(pair, case)


async def test_groups(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    protocols = [JoinGroupRequestProtocol("range", b"m"), JoinGroupRequestProtocol("sticky", b"n")]

    async def case(broker: ComparedBroker) -> Any:
        client = broker.client
        while (await client.request(FindCoordinatorRequest(coordinator_keys=["g"]), 6)).coordinators[0].error_code:
            pass  # Kafka makes the topic of the offsets first

        async def join(member_id: str, version: int = 9, **more: Any) -> Any:
            given = {"session_timeout_ms": 10000, "rebalance_timeout_ms": 10000, "protocol_type": "consumer", **more}
            request = JoinGroupRequest("g", member_id=member_id, **{"protocols": protocols, **given})
            answer = await client.request(request, version)
            return answer, (
                ErrorCode(answer.error_code).name,
                answer.generation_id,
                answer.protocol_type,
                answer.protocol_name,
                bool(answer.leader) and answer.leader == answer.member_id,
                answer.skip_assignment,
                [(member.group_instance_id, member.metadata) for member in answer.members],
            )

        async def code(request: Any, version: int) -> str:
            return ErrorCode((await client.request(request, version)).error_code).name

        async def described() -> Any:
            (group,) = (await client.request(DescribeGroupsRequest(["g"]), 6)).groups
            members = [(one.member_metadata, one.member_assignment) for one in group.members]
            agreed = group.group_state, group.protocol_type, group.protocol_data
            return ErrorCode(group.error_code).name, agreed, members

        while "COORDINATOR" in (await described())[0]:
            pass  # it has not read them yet
        answers: list[Any] = [await described()]
        answers.append((await join("nosuch"))[1])
        answers.append((await join("", session_timeout_ms=5))[1])
        answers.append((await join("", protocols=[]))[1])
        first, answer = await join("")
        answers.append(answer)
        joined, answer = await join(first.member_id)
        answers.append(answer)
        me, now = joined.member_id, joined.generation_id
        answers.append(await described())
        answers.append(await code(HeartbeatRequest("g", now, me), 4))
        assigned = [SyncGroupRequestAssignment(me, b"mine")]
        syncs = (
            SyncGroupRequest("g", now + 1, me, None, "consumer", joined.protocol_name),
            SyncGroupRequest("g", now, "nosuch", None, "consumer", joined.protocol_name),
            SyncGroupRequest("g", now, me, None, "consumer", "other"),
            SyncGroupRequest("g", now, me, None, "consumer", joined.protocol_name, assigned),
            SyncGroupRequest("g", now, me),
        )
        answers += [(await code(sync, 5), (await client.request(sync, 5)).assignment) for sync in syncs]
        answers.append(await described())
        heartbeats = (
            HeartbeatRequest("g", now, me),
            HeartbeatRequest("g", now + 1, me),
            HeartbeatRequest("g", now, "nosuch"),
            HeartbeatRequest("nosuch", now, me),
            HeartbeatRequest("g", now, me, "nosuch"),
        )
        answers += [await code(heartbeat, 4) for heartbeat in heartbeats]
        answers.append((await join("", protocol_type="other"))[1])
        answers.append((await join("", protocols=[JoinGroupRequestProtocol("own", b"")]))[1])
        again, answer = await join(me)
        answers.append(answer)
        leaving = LeaveGroupRequest("g", members=[MemberIdentity("nosuch"), MemberIdentity(again.member_id)])
        answers.append([one.error_code for one in (await client.request(leaving, 5)).members])
        answers.append(await described())
        deletion = await client.request(DeleteGroupsRequest(["g", "nosuch"]), 2)
        answers.append(sorted((one.group_id, one.error_code) for one in deletion.results))
        answers.append(await described())
        return answers

    await same(pair, case)


async def test_a_partition_twice_in_one_request(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.create("doubled", 2)
        batches = [(0, b"a"), (1, b"b"), (0, b"c")]
        data = [
            TopicProduceData("doubled", partition_data=[PartitionProduceData(index, make_batch(value))])
            for index, value in batches
        ]
        produced = await broker.client.request(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=data), 12)
        answers = [
            (partition.index, ErrorCode(partition.error_code).name, partition.base_offset)
            for topic in produced.responses
            for partition in topic.partition_responses
        ]
        wanted = [
            FetchPartition(0, -1, 1, partition_max_bytes=2**20),
            FetchPartition(1, -1, 0, partition_max_bytes=2**20),
            FetchPartition(0, -1, 0, partition_max_bytes=2**20),
        ]
        request = FetchRequest(max_wait_ms=0, topics=[FetchTopic("doubled", partitions=wanted)])
        fetched = await broker.client.request(request, 12)
        partitions = [partition for topic in fetched.responses for partition in topic.partitions]
        read = [
            (one.partition_index, [record.value for batch in read_batches(one.records) for record in batch.records()])
            for one in partitions
        ]
        return [sorted(answers), read]

    answers, read = await same(pair, case)
    assert answers == [(0, "NONE", 0), (1, "NONE", 0)]
    assert read == [(0, [b"c"]), (1, [b"b"])]


async def test_too_many_partitions_at_once(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        results = []
        for counts in ((10_001,), (5000, 5001), (2**31 - 1,)):
            topics = [CreatableTopic(f"many{index}", count, 1) for index, count in enumerate(counts)]
            for validate_only in (True, False):
                response = await broker.client.request(CreateTopicsRequest(topics, validate_only=validate_only), 7)
                results.append(sorted((topic.name, ErrorCode(topic.error_code).name) for topic in response.topics))
        return results

    answers = await same(pair, case)
    assert {code for answer in answers for _, code in answer} == {"POLICY_VIOLATION"}
