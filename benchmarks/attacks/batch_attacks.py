"""Attacks by record batches: bombs, garbage, tiny records, and batches for very many partitions."""

from __future__ import annotations

import os
from collections.abc import Sequence

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from aioproducer.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.records.compression import CompressionType, compress
from benchmarks.attacks import hostile_batches, steps
from benchmarks.attacks.honest_client import HONEST
from benchmarks.attacks.hostile_client import HOSTILE, HostileClient, frame
from benchmarks.harness.produce_frame import VERSION as PRODUCE

LIST_OFFSETS = 7
"""The version that attacks use."""


def zstd_bombs(client: HostileClient) -> steps.Attacking:
    return _batches(client, [hostile_batches.bomb(CompressionType.ZSTD)] * 200)


def gzip_bombs(client: HostileClient) -> steps.Attacking:
    return _batches(client, [hostile_batches.bomb(CompressionType.GZIP)] * 60)


def lz4_bombs(client: HostileClient) -> steps.Attacking:
    return _batches(client, [hostile_batches.bomb(CompressionType.LZ4)] * 60)


def huge_requests(client: HostileClient) -> steps.Attacking:
    return _batches(client, [hostile_batches.large_garbage()] * 95)


def gzip_members(client: HostileClient) -> steps.Attacking:
    return _batches(client, [hostile_batches.gzip_members()])


def lz4_frames(client: HostileClient) -> steps.Attacking:
    return _batches(client, [hostile_batches.lz4_frames()])


def garbage_in_a_batch(client: HostileClient) -> steps.Attacking:
    return _batches(client, [hostile_batches.garbage()], topic=HONEST)


def tiny_records(client: HostileClient) -> steps.Attacking:
    count = 1_000_000
    body = compress(CompressionType.ZSTD, hostile_batches.records(count))
    large = hostile_batches.batch(body, count, CompressionType.ZSTD)
    yield
    connection = client.connect()
    for _ in client.rounds():
        assert connection.produce(HOSTILE, large) == [ErrorCode.NONE]


def largest_timestamp(client: HostileClient) -> steps.Attacking:
    count = 400_000
    body = compress(CompressionType.ZSTD, hostile_batches.records(count))
    connection = client.connect()
    assert connection.produce(HOSTILE, hostile_batches.batch(body, count, CompressionType.ZSTD)) == [ErrorCode.NONE]
    partition = ListOffsetsPartition(0, timestamp=-3)
    request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic(HOSTILE, [partition])])
    yield
    for _ in client.rounds():
        connection.ask(request, LIST_OFFSETS)


def wide_produces(client: HostileClient) -> steps.Attacking:
    batch = hostile_batches.batch(hostile_batches.records(1), 1)
    data = [PartitionProduceData(number, batch) for number in steps.WIDE_PARTITIONS]
    topics = [TopicProduceData(steps.WIDE_TOPICS[0], partition_data=data)]
    return steps.at_once(client, ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics), PRODUCE)


def compressed_again(client: HostileClient) -> steps.Attacking:
    configs = [CreatableTopicConfig("compression.type", "zstd"), CreatableTopicConfig("compression.zstd.level", "22")]
    topic = CreatableTopic("packed", 30, 1, configs=configs)
    client.connect().ask(CreateTopicsRequest([topic], 30_000), 5)
    batch = hostile_batches.batch(hostile_batches.records(1, os.urandom(1_000_000)), 1)
    data = [PartitionProduceData(number, batch) for number in range(30)]
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[TopicProduceData("packed", partition_data=data)])
    sent = frame(request, PRODUCE)
    yield
    steps.all_at_once([client.connect() for _ in range(8)], sent)
    client.wait()


def _batches(client: HostileClient, batches: Sequence[bytes], topic: str = HOSTILE) -> steps.Attacking:
    """Every batch is refused, each time."""
    yield
    connection = client.connect()
    for _ in client.rounds():
        assert ErrorCode.NONE not in connection.produce(topic, *batches)
