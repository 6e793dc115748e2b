"""Steps that several attacks take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from aioproducer.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aioproducer.protocol.messages.fetch import FetchPartition, FetchTopic
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.schema import Request
from benchmarks.attacks.hostile_client import HostileClient, HostileConnection, frame

Attacking = Iterator[None]
"""Prepares, yields, and attacks."""

METADATA = 9
"""The version that attacks use."""

WIDE_TOPICS = [f"wide-{number}" for number in range(10)]
WIDE_PARTITIONS = range(9_990)
"""Of each wide topic."""


def all_at_once(connections: Sequence[HostileConnection], request: bytes) -> None:
    for connection in connections:
        connection.send_bytes(request)
    for connection in connections:
        connection.receive_frame()


def metadata(names: Iterable[str]) -> MetadataRequest:
    return MetadataRequest([MetadataRequestTopic(name=name) for name in names])


def wide_topic(connection: HostileConnection, name: str, partitions: int) -> FetchTopic:
    connection.ask(CreateTopicsRequest([CreatableTopic(name, partitions, 1, [], [])], 30_000), 5)
    return FetchTopic(name, partitions=[FetchPartition(number) for number in range(partitions)])


def with_20_000_topics(client: HostileClient) -> HostileConnection:
    connection = client.connect()
    for number in range(10):
        connection.ask(metadata(f"x{number}a{index}" for index in range(2_000)), METADATA)
    return connection


def with_wide_topics(client: HostileClient) -> HostileConnection:
    connection = client.connect()
    for topic in WIDE_TOPICS:
        wide_topic(connection, topic, len(WIDE_PARTITIONS))
    return connection


def at_once(client: HostileClient, request: Request, version: int) -> Attacking:
    """Eight clients send the request about the first wide topic at the same time, and again when all are answered."""
    wide_topic(client.connect(), WIDE_TOPICS[0], len(WIDE_PARTITIONS))
    sent = frame(request, version)
    yield
    connections = [client.connect() for _ in range(8)]
    for _ in client.rounds():
        all_at_once(connections, sent)
