"""Attacks that name very many partitions, let much come and go, or do not read what they ask for."""

from __future__ import annotations

import os

from aioproducer.error_code import ErrorCode
from aioproducer.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from aioproducer.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from aioproducer.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from aioproducer.protocol.messages.end_txn import EndTxnRequest
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aioproducer.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from aioproducer.protocol.schema import Request
from benchmarks.attacks import hostile_batches
from benchmarks.attacks.hostile_client import HostileClient, HostileConnection, frame
from benchmarks.attacks.steps import METADATA, Attacking, all_at_once, wide_topic, with_20_000_topics
from benchmarks.attacks.topic_names import HOSTILE
from benchmarks.harness.produce_frame import VERSION as PRODUCE

TOPICS = [f"wide-{number}" for number in range(10)]
"""Topics of 9,990 partitions each."""

_PARTITIONS = range(9_990)
_FETCH, _OFFSET_FETCH, _OFFSET_COMMIT, _INIT, _ADD, _COMMIT_IN_TRANSACTION, _END = 11, 8, 8, 4, 3, 3, 3
"""The versions that these attacks use."""

_SMALL_BUFFER = 4096


def wide_transactions(client: HostileClient) -> Attacking:
    connection = _with_wide_topics(client)
    identity = _producer(connection)
    yield
    for _ in client.rounds():
        for topic in TOPICS:
            wanted = [AddPartitionsToTxnTopic(topic, list(_PARTITIONS))]
            add = AddPartitionsToTxnRequest([], HOSTILE, *identity, wanted)
            while ErrorCode.CONCURRENT_TRANSACTIONS in _codes(connection, add):
                pass
        assert connection.ask(EndTxnRequest(HOSTILE, *identity, True), _END).error_code == ErrorCode.NONE


def wide_offsets_of_transactions(client: HostileClient) -> Attacking:
    connection = _with_wide_topics(client)
    identity = _producer(connection)
    add = AddPartitionsToTxnRequest([], HOSTILE, *identity, [AddPartitionsToTxnTopic(HOSTILE, [0])])
    yield
    for _ in client.rounds():
        while ErrorCode.CONCURRENT_TRANSACTIONS in _codes(connection, add):
            pass
        for topic in TOPICS:
            partitions = [TxnOffsetCommitRequestPartition(number, 1) for number in _PARTITIONS]
            wanted = [TxnOffsetCommitRequestTopic(topic, partitions)]
            request = TxnOffsetCommitRequest(HOSTILE, HOSTILE, *identity, topics=wanted)
            connection.ask(request, _COMMIT_IN_TRANSACTION)
        connection.ask(EndTxnRequest(HOSTILE, *identity, True), _END)


def wide_produces(client: HostileClient) -> Attacking:
    batch = hostile_batches.batch(hostile_batches.records(1), 1)
    data = [PartitionProduceData(number, batch) for number in _PARTITIONS]
    topics = [TopicProduceData(TOPICS[0], partition_data=data)]
    return _at_once(client, ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics), PRODUCE)


def all_committed_offsets(client: HostileClient) -> Attacking:
    connection = client.connect()
    for topic in TOPICS:
        wide_topic(connection, topic, len(_PARTITIONS))
        partitions = [OffsetCommitRequestPartition(number, 1) for number in _PARTITIONS]
        topics = [OffsetCommitRequestTopic(topic, partitions=partitions)]
        connection.ask(OffsetCommitRequest(HOSTILE, topics=topics), _OFFSET_COMMIT)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(HOSTILE, topics=None)])
    return _at_once(client, request, _OFFSET_FETCH)


def wide_record_deletions(client: HostileClient) -> Attacking:
    partitions = [DeleteRecordsPartition(number, -1) for number in _PARTITIONS]
    return _at_once(client, DeleteRecordsRequest([DeleteRecordsTopic(TOPICS[0], partitions)], 5_000), 2)


def wide_topic_deletions(client: HostileClient) -> Attacking:
    connection = client.connect()
    yield
    for number in client.rounds():
        names = [f"{topic}-{number}" for topic in TOPICS[:4]]
        for name in names:
            wide_topic(connection, name, len(_PARTITIONS))
        connection.ask(DeleteTopicsRequest([], names, 30_000), 5)


def unread_metadata(client: HostileClient) -> Attacking:
    with_20_000_topics(client)
    return _unread(client, MetadataRequest(None), METADATA, 1_000)


def unread_configs(client: HostileClient) -> Attacking:
    with_20_000_topics(client)
    named = [DescribeConfigsResource(2, f"x0a{index}", None) for index in range(2_000)]
    return _unread(client, DescribeConfigsRequest(named, include_synonyms=True, include_documentation=True), 4, 100)


def greedy_fetches(client: HostileClient) -> Attacking:
    connection = client.connect()
    large = hostile_batches.batch(hostile_batches.records(1, os.urandom(1_000_000)), 1)
    for _ in range(30):
        assert connection.produce(HOSTILE, large) == [ErrorCode.NONE]
    partition = FetchPartition(0, fetch_offset=0, partition_max_bytes=57_671_680)
    request = frame(FetchRequest(max_wait_ms=0, topics=[FetchTopic(HOSTILE, partitions=[partition])]), _FETCH)
    yield
    connections = [client.connect() for _ in range(60)]
    for _ in client.rounds():
        all_at_once(connections, request)


def simultaneous_closes(client: HostileClient) -> Attacking:
    connections = [client.connect() for _ in range(3_000)]
    yield
    for connection in connections:
        connection.close()
    client.wait()


def compressed_again(client: HostileClient) -> Attacking:
    configs = [CreatableTopicConfig("compression.type", "zstd"), CreatableTopicConfig("compression.zstd.level", "22")]
    topic = CreatableTopic("packed", 30, 1, configs=configs)
    client.connect().ask(CreateTopicsRequest([topic], 30_000), 5)
    batch = hostile_batches.batch(hostile_batches.records(1, os.urandom(1_000_000)), 1)
    data = [PartitionProduceData(number, batch) for number in range(30)]
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[TopicProduceData("packed", partition_data=data)])
    sent = frame(request, PRODUCE)
    yield
    all_at_once([client.connect() for _ in range(8)], sent)
    client.wait()


def _with_wide_topics(client: HostileClient) -> HostileConnection:
    connection = client.connect()
    for topic in TOPICS:
        wide_topic(connection, topic, len(_PARTITIONS))
    return connection


def _producer(connection: HostileConnection) -> tuple[int, int]:
    answer = connection.ask(InitProducerIdRequest(HOSTILE, 60_000), _INIT)
    return answer.producer_id, answer.producer_epoch


def _codes(connection: HostileConnection, request: AddPartitionsToTxnRequest) -> set[int]:
    response = connection.ask(request, _ADD)
    topics = response.results_by_topic_v3_and_below
    return {one.partition_error_code for of in topics for one in of.results_by_partition}


def _at_once(client: HostileClient, request: Request, version: int) -> Attacking:
    """Eight clients send the request about the first wide topic at the same time, and again when all are answered."""
    wide_topic(client.connect(), TOPICS[0], len(_PARTITIONS))
    sent = frame(request, version)
    yield
    connections = [client.connect() for _ in range(8)]
    for _ in client.rounds():
        all_at_once(connections, sent)


def _unread(client: HostileClient, request: Request, version: int, clients: int) -> Attacking:
    """So many clients send the request, and read nothing."""
    sent = frame(request, version)
    yield
    for _ in range(clients):
        client.connect(receive_buffer=_SMALL_BUFFER).send_bytes(sent)
    client.wait()
