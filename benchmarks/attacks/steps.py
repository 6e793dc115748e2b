"""What several attacks do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from aioproducer.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aioproducer.protocol.messages.fetch import FetchPartition, FetchTopic
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from benchmarks.attacks.hostile_client import HostileClient, HostileConnection

Attacking = Iterator[None]
"""Prepares, yields, and attacks."""

METADATA = 9
"""The version that attacks use."""


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
