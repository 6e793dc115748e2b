"""Attacks by topics, their metadata and configs, and quotas: very many of them, or such that come and go."""

from __future__ import annotations

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntryData, OpData
from aioproducer.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from aioproducer.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aioproducer.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest
from aioproducer.protocol.messages.describe_client_quotas import EntityData
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from aioproducer.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.schema import Request
from benchmarks.attacks import steps
from benchmarks.attacks.hostile_client import HOSTILE, HostileClient, frame

MANY = 2**31 - 1
_TOPIC, _BROKER = 2, 4
"""Types of resources that have configs."""

_SMALL_BUFFER = 4096


def partitions_beyond_all_limits(client: HostileClient) -> steps.Attacking:
    yield
    connection = client.connect()
    for _ in client.rounds():
        for validate_only in (True, False):
            for count in (300_000, MANY):
                topics = CreateTopicsRequest([CreatableTopic("large", count, 1, [], [])], 30_000, validate_only)
                assert connection.ask(topics, 5).topics[0].error_code != ErrorCode.NONE
            partitions = CreatePartitionsRequest([CreatePartitionsTopic(HOSTILE, MANY, None)], 30_000, validate_only)
            assert connection.ask(partitions, 3).results[0].error_code != ErrorCode.NONE


def many_partitions(client: HostileClient) -> steps.Attacking:
    yield
    connection = client.connect()
    for number in client.rounds():
        request = CreateTopicsRequest([CreatableTopic(f"large-{number}", 10_000, 1, [], [])], 30_000)
        connection.ask(request, 5)


def metadata_creates_topics(client: HostileClient) -> steps.Attacking:
    yield
    connection = client.connect()
    for number in client.rounds():
        connection.ask(steps.metadata(f"x{number}a{index}" for index in range(10_000)), steps.METADATA)


def metadata_creates_colliding_names(client: HostileClient) -> steps.Attacking:
    yield
    connection = client.connect()
    for number in client.rounds():
        connection.ask(steps.metadata(f"x{number}_{index}" for index in range(5_000)), steps.METADATA)


def metadata_of_all_topics(client: HostileClient) -> steps.Attacking:
    connection = steps.with_20_000_topics(client)
    yield
    for _ in client.rounds():
        connection.ask(MetadataRequest(None), steps.METADATA)


def unread_metadata(client: HostileClient) -> steps.Attacking:
    steps.with_20_000_topics(client)
    return _unread(client, MetadataRequest(None), steps.METADATA, 1_000)


def configs_of_many_topics(client: HostileClient) -> steps.Attacking:
    connection = steps.with_20_000_topics(client)
    named = [DescribeConfigsResource(_TOPIC, f"x0a{index}", None) for index in range(2_000)]
    request = frame(DescribeConfigsRequest(named, include_synonyms=True, include_documentation=True), 4)
    yield
    for _ in client.rounds():
        connection.send_bytes(request)
        connection.receive_frame()


def unread_configs(client: HostileClient) -> steps.Attacking:
    steps.with_20_000_topics(client)
    named = [DescribeConfigsResource(2, f"x0a{index}", None) for index in range(2_000)]
    return _unread(client, DescribeConfigsRequest(named, include_synonyms=True, include_documentation=True), 4, 100)


def changing_configs(client: HostileClient) -> steps.Attacking:
    connection = steps.with_20_000_topics(client)
    yield
    for number in client.rounds():
        change = AlterableConfig("message.max.bytes", 0, str(2_000_000 + number))
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(_BROKER, "", [change])])
        assert connection.ask(request, 1).responses[0].error_code == ErrorCode.NONE


def changing_quotas(client: HostileClient) -> steps.Attacking:
    addresses = [f"10.{number >> 8}.{number & 255}.1" for number in range(6_600)]
    entries = [
        EntryData([EntityData("ip", address)], [OpData("connection_creation_rate", 5.0)]) for address in addresses
    ]
    request = frame(AlterClientQuotasRequest(entries), 1)
    yield
    connection = client.connect()
    for _ in client.rounds():
        steps.all_at_once([connection], request)


def wide_record_deletions(client: HostileClient) -> steps.Attacking:
    partitions = [DeleteRecordsPartition(number, -1) for number in steps.WIDE_PARTITIONS]
    return steps.at_once(client, DeleteRecordsRequest([DeleteRecordsTopic(steps.WIDE_TOPICS[0], partitions)], 5_000), 2)


def wide_topic_deletions(client: HostileClient) -> steps.Attacking:
    connection = client.connect()
    yield
    for number in client.rounds():
        names = [f"{topic}-{number}" for topic in steps.WIDE_TOPICS[:4]]
        for name in names:
            steps.wide_topic(connection, name, len(steps.WIDE_PARTITIONS))
        connection.ask(DeleteTopicsRequest([], names, 30_000), 5)


def _unread(client: HostileClient, request: Request, version: int, clients: int) -> steps.Attacking:
    """So many clients send the request, and read nothing."""
    sent = frame(request, version)
    yield
    for _ in range(clients):
        client.connect(receive_buffer=_SMALL_BUFFER).send_bytes(sent)
    client.wait()
