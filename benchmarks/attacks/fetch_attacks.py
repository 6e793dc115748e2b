"""Attacks by Fetch requests: wide or repeated ones, sessions, and answers that nobody reads."""

from __future__ import annotations

import os
from collections.abc import Sequence

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from benchmarks.attacks import hostile_batches, steps
from benchmarks.attacks.honest_client import HONEST
from benchmarks.attacks.hostile_client import HOSTILE, HostileClient, frame

MANY = 2**31 - 1
FETCH = 11
"""The version that attacks use."""

PARTITION = FetchPartition(0, fetch_offset=0, partition_max_bytes=1_000)


def waiting_fetch_duplicates(client: HostileClient) -> steps.Attacking:
    yield
    client.connect().send(_fetch([PARTITION] * 1_000, max_wait_ms=600_000, min_bytes=MANY), FETCH)
    client.wait()


def fetch_duplicates(client: HostileClient) -> steps.Attacking:
    request = frame(_fetch([PARTITION] * 19_990), FETCH)
    yield
    connection = client.connect()
    for _ in client.rounds():
        connection.send_bytes(request)
        connection.receive_frame()


def too_many_duplicates(client: HostileClient) -> steps.Attacking:
    request = frame(_fetch([PARTITION] * 100_000), FETCH)
    yield
    for _ in client.rounds():
        connection = client.connect()
        connection.send_bytes(request)
        assert connection.is_closed()
        connection.close()


def wide_fetches(client: HostileClient) -> steps.Attacking:
    yield
    partitions = [FetchPartition(number, fetch_offset=0, partition_max_bytes=1 << 20) for number in range(3_000)]
    for _ in range(3):
        client.connect().send(_fetch(partitions, max_wait_ms=600_000, min_bytes=50 << 20), FETCH)
    client.wait()


def wide_sessions(client: HostileClient) -> steps.Attacking:
    connections = [client.connect() for _ in range(5)]
    full = FetchRequest(max_wait_ms=0, session_epoch=0, topics=[steps.wide_topic(connections[0], "wide", 5_000)])
    yield
    sessions = [connection.ask(full, FETCH).session_id for connection in connections]
    assert all(sessions)
    for number in client.rounds():
        for connection, session in zip(connections, sessions, strict=True):
            request = FetchRequest(max_wait_ms=5, min_bytes=1, session_id=session, session_epoch=number + 1)
            connection.send(request, FETCH)
        for connection in connections:
            connection.receive_frame()


def widest_waits(client: HostileClient) -> steps.Attacking:
    connections = [client.connect() for _ in range(5)]
    topics = [steps.wide_topic(connections[0], name, 9_990) for name in ("wide", "wider")]
    request = frame(FetchRequest(max_wait_ms=5, min_bytes=1, topics=topics), FETCH)
    yield
    for _ in client.rounds():
        steps.all_at_once(connections, request)


def session_churn(client: HostileClient) -> steps.Attacking:
    partitions = [FetchPartition(number) for number in range(50)]
    request = frame(
        FetchRequest(max_wait_ms=0, session_epoch=0, topics=[FetchTopic(HOSTILE, partitions=partitions)]), FETCH
    )
    yield
    connections = [client.connect() for _ in range(1_500)]
    for _ in client.rounds():
        steps.all_at_once(connections, request)


def never_reading_clients(client: HostileClient) -> steps.Attacking:
    connection = client.connect()
    large = hostile_batches.batch(hostile_batches.records(1, os.urandom(1_000_000)), 1)
    for _ in range(56):
        assert connection.produce(HOSTILE, large) == [ErrorCode.NONE]
    partitions = [FetchPartition(0, fetch_offset=0, partition_max_bytes=57_671_680)]
    yield
    for _ in range(30):
        client.connect(receive_buffer=4096).send(_fetch(partitions, topic=HOSTILE), FETCH)
    client.wait()


def greedy_fetches(client: HostileClient) -> steps.Attacking:
    connection = client.connect()
    large = hostile_batches.batch(hostile_batches.records(1, os.urandom(1_000_000)), 1)
    for _ in range(30):
        assert connection.produce(HOSTILE, large) == [ErrorCode.NONE]
    partition = FetchPartition(0, fetch_offset=0, partition_max_bytes=57_671_680)
    request = frame(FetchRequest(max_wait_ms=0, topics=[FetchTopic(HOSTILE, partitions=[partition])]), FETCH)
    yield
    connections = [client.connect() for _ in range(60)]
    for _ in client.rounds():
        steps.all_at_once(connections, request)


def _fetch(
    partitions: Sequence[FetchPartition], topic: str = HONEST, max_wait_ms: int = 0, min_bytes: int = 0
) -> FetchRequest:
    topics = [FetchTopic(topic, partitions=list(partitions))]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=57_671_680, topics=topics)
