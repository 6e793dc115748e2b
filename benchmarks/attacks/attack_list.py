"""Attacks of one client on a broker: each is a generator that prepares, yields, and attacks."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aioproducer.error_code import ErrorCode
from aioproducer.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntryData, OpData
from aioproducer.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from aioproducer.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aioproducer.protocol.messages.describe_client_quotas import EntityData
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from aioproducer.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from aioproducer.protocol.messages.list_groups import ListGroupsRequest
from aioproducer.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aioproducer.records.compression import CompressionType, compress
from benchmarks.attacks import hostile_batches, wide_attacks
from benchmarks.attacks.hostile_client import HostileClient, frame
from benchmarks.attacks.steps import METADATA, Attacking, all_at_once, metadata, wide_topic, with_20_000_topics
from benchmarks.attacks.topic_names import HONEST, HOSTILE

MANY = 2**31 - 1
FETCH, JOIN, LIST_OFFSETS, OFFSET_COMMIT = 11, 5, 7, 8
"""The versions that attacks use."""

_TOPIC, _BROKER = 2, 4
"""Types of resources that have configs."""

PARTITION = FetchPartition(0, fetch_offset=0, partition_max_bytes=1_000)


@dataclass(frozen=True)
class Attack:
    """``arguments`` are those of ``aioproducer broker``, in which ``{data}`` stands for an empty directory;
    ``descriptors`` is how many it may have, 0 for as many as the system allows."""

    what: str
    run: Callable[[HostileClient], Attacking]
    arguments: Sequence[str] = ()
    descriptors: int = 0

    @property
    def name(self) -> str:
        return self.run.__name__.replace("_", "-")


def waiting_fetch_duplicates(client: HostileClient) -> Attacking:
    yield
    client.connect().send(_fetch([PARTITION] * 1_000, max_wait_ms=600_000, min_bytes=MANY), FETCH)
    client.wait()


def fetch_duplicates(client: HostileClient) -> Attacking:
    request = frame(_fetch([PARTITION] * 19_990), FETCH)
    yield
    connection = client.connect()
    for _ in client.rounds():
        connection.send_bytes(request)
        connection.receive_frame()


def too_many_duplicates(client: HostileClient) -> Attacking:
    request = frame(_fetch([PARTITION] * 100_000), FETCH)
    yield
    for _ in client.rounds():
        connection = client.connect()
        connection.send_bytes(request)
        assert connection.is_closed()
        connection.close()


def wide_fetches(client: HostileClient) -> Attacking:
    yield
    partitions = [FetchPartition(number, fetch_offset=0, partition_max_bytes=1 << 20) for number in range(3_000)]
    for _ in range(3):
        client.connect().send(_fetch(partitions, max_wait_ms=600_000, min_bytes=50 << 20), FETCH)
    client.wait()


def wide_sessions(client: HostileClient) -> Attacking:
    connections = [client.connect() for _ in range(5)]
    full = FetchRequest(max_wait_ms=0, session_epoch=0, topics=[wide_topic(connections[0], "wide", 5_000)])
    yield
    sessions = [connection.ask(full, FETCH).session_id for connection in connections]
    assert all(sessions)
    for number in client.rounds():
        for connection, session in zip(connections, sessions, strict=True):
            request = FetchRequest(max_wait_ms=5, min_bytes=1, session_id=session, session_epoch=number + 1)
            connection.send(request, FETCH)
        for connection in connections:
            connection.receive_frame()


def widest_waits(client: HostileClient) -> Attacking:
    connections = [client.connect() for _ in range(5)]
    topics = [wide_topic(connections[0], name, 9_990) for name in ("wide", "wider")]
    request = frame(FetchRequest(max_wait_ms=5, min_bytes=1, topics=topics), FETCH)
    yield
    for _ in client.rounds():
        all_at_once(connections, request)


def session_churn(client: HostileClient) -> Attacking:
    partitions = [FetchPartition(number) for number in range(50)]
    request = frame(
        FetchRequest(max_wait_ms=0, session_epoch=0, topics=[FetchTopic(HOSTILE, partitions=partitions)]), FETCH
    )
    yield
    connections = [client.connect() for _ in range(1_500)]
    for _ in client.rounds():
        all_at_once(connections, request)


def zstd_bombs(client: HostileClient) -> Attacking:
    return _batches(client, [hostile_batches.bomb(CompressionType.ZSTD)] * 200)


def gzip_bombs(client: HostileClient) -> Attacking:
    return _batches(client, [hostile_batches.bomb(CompressionType.GZIP)] * 60)


def lz4_bombs(client: HostileClient) -> Attacking:
    return _batches(client, [hostile_batches.bomb(CompressionType.LZ4)] * 60)


def huge_requests(client: HostileClient) -> Attacking:
    return _batches(client, [hostile_batches.large_garbage()] * 95)


def gzip_members(client: HostileClient) -> Attacking:
    return _batches(client, [hostile_batches.gzip_members()])


def lz4_frames(client: HostileClient) -> Attacking:
    return _batches(client, [hostile_batches.lz4_frames()])


def garbage_in_a_batch(client: HostileClient) -> Attacking:
    return _batches(client, [hostile_batches.garbage()], topic=HONEST)


def tiny_records(client: HostileClient) -> Attacking:
    count = 1_000_000
    body = compress(CompressionType.ZSTD, hostile_batches.records(count))
    large = hostile_batches.batch(body, count, CompressionType.ZSTD)
    yield
    connection = client.connect()
    for _ in client.rounds():
        assert connection.produce(HOSTILE, large) == [ErrorCode.NONE]


def largest_timestamp(client: HostileClient) -> Attacking:
    count = 400_000
    body = compress(CompressionType.ZSTD, hostile_batches.records(count))
    connection = client.connect()
    assert connection.produce(HOSTILE, hostile_batches.batch(body, count, CompressionType.ZSTD)) == [ErrorCode.NONE]
    partition = ListOffsetsPartition(0, timestamp=-3)
    request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic(HOSTILE, [partition])])
    yield
    for _ in client.rounds():
        connection.ask(request, LIST_OFFSETS)


def partitions_beyond_all_limits(client: HostileClient) -> Attacking:
    yield
    connection = client.connect()
    for _ in client.rounds():
        for validate_only in (True, False):
            for count in (300_000, MANY):
                topics = CreateTopicsRequest([CreatableTopic("large", count, 1, [], [])], 30_000, validate_only)
                assert connection.ask(topics, 5).topics[0].error_code != ErrorCode.NONE
            partitions = CreatePartitionsRequest([CreatePartitionsTopic(HOSTILE, MANY, None)], 30_000, validate_only)
            assert connection.ask(partitions, 3).results[0].error_code != ErrorCode.NONE


def many_partitions(client: HostileClient) -> Attacking:
    yield
    connection = client.connect()
    for number in client.rounds():
        request = CreateTopicsRequest([CreatableTopic(f"large-{number}", 10_000, 1, [], [])], 30_000)
        connection.ask(request, 5)


def metadata_creates_topics(client: HostileClient) -> Attacking:
    yield
    connection = client.connect()
    for number in client.rounds():
        connection.ask(metadata(f"x{number}a{index}" for index in range(10_000)), METADATA)


def metadata_creates_colliding_names(client: HostileClient) -> Attacking:
    yield
    connection = client.connect()
    for number in client.rounds():
        connection.ask(metadata(f"x{number}_{index}" for index in range(5_000)), METADATA)


def metadata_of_all_topics(client: HostileClient) -> Attacking:
    connection = with_20_000_topics(client)
    yield
    for _ in client.rounds():
        connection.ask(MetadataRequest(None), METADATA)


def configs_of_many_topics(client: HostileClient) -> Attacking:
    connection = with_20_000_topics(client)
    named = [DescribeConfigsResource(_TOPIC, f"x0a{index}", None) for index in range(2_000)]
    request = frame(DescribeConfigsRequest(named, include_synonyms=True, include_documentation=True), 4)
    yield
    for _ in client.rounds():
        connection.send_bytes(request)
        connection.receive_frame()


def changing_configs(client: HostileClient) -> Attacking:
    connection = with_20_000_topics(client)
    yield
    for number in client.rounds():
        change = AlterableConfig("message.max.bytes", 0, str(2_000_000 + number))
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(_BROKER, "", [change])])
        assert connection.ask(request, 1).responses[0].error_code == ErrorCode.NONE


def many_groups(client: HostileClient) -> Attacking:
    yield
    connection = client.connect()
    for number in range(20_000):
        connection.ask(_commit(f"group-{number}"), OFFSET_COMMIT)
    for _ in client.rounds():
        assert len(connection.ask(ListGroupsRequest(), 4).groups) == 20_000


def wide_commits(client: HostileClient) -> Attacking:
    connections = [client.connect() for _ in range(8)]
    for name in ("wide", "wider"):
        wide_topic(connections[0], name, 9_990)
    partitions = [OffsetCommitRequestPartition(number, 1) for number in range(9_990)]
    topics = [OffsetCommitRequestTopic(name, partitions=partitions) for name in ("wide", "wider")]
    request = frame(OffsetCommitRequest("hostile", topics=topics), OFFSET_COMMIT)
    yield
    for _ in client.rounds():
        all_at_once(connections, request)


def unknown_members_leave(client: HostileClient) -> Attacking:
    request = frame(LeaveGroupRequest("hostile", members=[MemberIdentity("m")] * 19_990), 5)
    yield
    connections = [client.connect() for _ in range(8)]
    for _ in client.rounds():
        all_at_once(connections, request)


def changing_quotas(client: HostileClient) -> Attacking:
    addresses = [f"10.{number >> 8}.{number & 255}.1" for number in range(6_600)]
    entries = [
        EntryData([EntityData("ip", address)], [OpData("connection_creation_rate", 5.0)]) for address in addresses
    ]
    request = frame(AlterClientQuotasRequest(entries), 1)
    yield
    connection = client.connect()
    for _ in client.rounds():
        all_at_once([connection], request)


def many_protocols(client: HostileClient) -> Attacking:
    protocols = [JoinGroupRequestProtocol(f"protocol-{number}", b"x" * 100) for number in range(100)]
    yield
    members = []
    for number in range(900):
        members.append(client.connect())
        join = JoinGroupRequest("large", 1_800_000, 1_800_000, "", f"i{number}", "consumer", protocols)
        members[-1].send(join, JOIN)
    client.wait()


def large_subscriptions(client: HostileClient) -> Attacking:
    protocols = [JoinGroupRequestProtocol("range", bytes(1_000_000))]
    yield
    connection = client.connect()
    for number in range(700):
        request = JoinGroupRequest(f"large-{number}", 1_800_000, 1_800_000, "", None, "consumer", protocols)
        assert connection.ask(request, JOIN).error_code == ErrorCode.MEMBER_ID_REQUIRED
    client.wait()


def long_names(client: HostileClient) -> Attacking:
    yield
    connection = client.connect()
    for number in range(2_000):
        connection.ask(InitProducerIdRequest(f"{number:05}" + "x" * 32_000, 60_000), 4)
    for number in range(500):
        connection.ask(_commit(f"{number:05}" + "y" * 32_000, "m" * 4_000), OFFSET_COMMIT)


def ghost_joins(client: HostileClient) -> Attacking:
    yield
    for number in range(2_000):
        connection = client.connect()
        connection.send(_join("ghosts", f"i{number}"), JOIN)
        connection.close()
    client.wait()


def large_group(client: HostileClient) -> Attacking:
    yield
    members = []
    for number in range(900):
        members.append(client.connect())
        members[-1].send(_join("large", f"i{number}"), JOIN)
    for member in members:
        member.close()
    client.wait()


def parts_of_requests(client: HostileClient) -> Attacking:
    part = struct.pack(">i", 90_000_000) + bytes(2_000_000)
    yield

    def send() -> None:
        with contextlib.suppress(OSError):  # the broker stops reading, and closes it in the end
            client.connect().send_bytes(part)

    threads = [threading.Thread(target=send, daemon=True) for _ in range(60)]
    for thread in threads:
        thread.start()
    client.wait()


def no_descriptors(client: HostileClient) -> Attacking:
    yield
    for _ in range(400):
        client.connect()
    client.wait()


def junk_that_is_logged(client: HostileClient) -> Attacking:
    yield
    for number in range(3_000):
        connection = client.connect()
        connection.send_bytes(struct.pack(">I", 0x80000000 + number))
        assert connection.is_closed()
        connection.close()


def never_reading_clients(client: HostileClient) -> Attacking:
    connection = client.connect()
    large = hostile_batches.batch(hostile_batches.records(1, os.urandom(1_000_000)), 1)
    for _ in range(56):
        assert connection.produce(HOSTILE, large) == [ErrorCode.NONE]
    partitions = [FetchPartition(0, fetch_offset=0, partition_max_bytes=57_671_680)]
    yield
    for _ in range(30):
        client.connect(receive_buffer=4096).send(_fetch(partitions, topic=HOSTILE), FETCH)
    client.wait()


def pipelined_requests(client: HostileClient) -> Attacking:
    requests = frame(MetadataRequest([]), METADATA) * 1_000
    yield

    def flood() -> None:
        connection = client.connect()
        with contextlib.suppress(OSError):
            reader = threading.Thread(target=_drain, args=(connection.receive_frame,), daemon=True)
            reader.start()
            for _ in client.rounds():
                connection.send_bytes(requests)

    threads = [threading.Thread(target=flood, daemon=True) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def connection_storm(client: HostileClient) -> Attacking:
    yield
    for _ in client.rounds():
        client.connect().close()


def _drain(receive: Callable[[], object]) -> None:
    with contextlib.suppress(OSError):
        while True:
            receive()


def _batches(client: HostileClient, batches: Sequence[bytes], topic: str = HOSTILE) -> Attacking:
    """Every batch is refused, each time."""
    yield
    connection = client.connect()
    for _ in client.rounds():
        assert ErrorCode.NONE not in connection.produce(topic, *batches)


def _fetch(
    partitions: Sequence[FetchPartition], topic: str = HONEST, max_wait_ms: int = 0, min_bytes: int = 0
) -> FetchRequest:
    topics = [FetchTopic(topic, partitions=list(partitions))]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=57_671_680, topics=topics)


def _join(group: str, instance: str) -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol("range", b"x" * 100)]
    return JoinGroupRequest(group, 1_800_000, 1_800_000, "", instance, "consumer", protocols)


def _commit(group: str, metadata: str = "") -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(0, 1, committed_metadata=metadata)
    return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(HOSTILE, partitions=[partition])])


_IN_A_DIRECTORY = ("--data-dir", "{data}", "-X", "log.flush.policy=never")
_LITTLE_MEMORY = ("-X", "queued.max.request.bytes=104857600")

ATTACKS = {
    attack.name: attack
    for attack in (
        Attack("a waiting fetch names a partition 1,000 times", waiting_fetch_duplicates),
        Attack("fetches that name a partition 19,990 times", fetch_duplicates),
        Attack("fetches that name a partition 100,000 times", too_many_duplicates),
        Attack("3 fetches wait for 3,000 partitions", wide_fetches, ("--topic", f"{HONEST}:3000")),
        Attack("5 fetch sessions of 5,000 partitions", wide_sessions),
        Attack("5 fetches at a time wait for 19,980 partitions", widest_waits),
        Attack("1,500 connections ask for fetch sessions again and again", session_churn),
        Attack("200 zstd batches of 127 MiB in a request", zstd_bombs),
        Attack("60 gzip batches of 127 MiB in a request", gzip_bombs),
        Attack("60 lz4 batches of 127 MiB in a request", lz4_bombs),
        Attack("95 batches of 1 MiB with garbage inside in a request", huge_requests),
        Attack("batches of empty gzip members", gzip_members),
        Attack("batches of empty lz4 frames", lz4_frames),
        Attack("batches of 1,000,000 empty records", tiny_records, ("-X", "log.retention.bytes=10000000")),
        Attack("batches with garbage inside", garbage_in_a_batch),
        Attack("ListOffsets of the largest timestamp, batch of 400,000 records", largest_timestamp),
        Attack("topics of 300,000 and 2³¹−1 partitions", partitions_beyond_all_limits),
        Attack("topics of 10,000 partitions", many_partitions),
        Attack("Metadata that creates 10,000 topics", metadata_creates_topics),
        Attack("Metadata that creates 5,000 topics with `_`", metadata_creates_colliding_names),
        Attack("Metadata of 20,000 topics", metadata_of_all_topics),
        Attack("DescribeConfigs of 2,000 topics among 20,000", configs_of_many_topics),
        Attack("a config of all brokers changes, 20,000 topics", changing_configs),
        Attack("20,000 groups, and lists of them", many_groups),
        Attack("8 clients commit 19,980 offsets at a time", wide_commits),
        Attack("8 clients remove 19,990 members that a group does not have", unknown_members_leave),
        Attack("quotas of 6,600 addresses, again and again", changing_quotas),
        Attack("900 members join a group, with 100 protocols each", many_protocols),
        Attack("700 clients with 1 MB of metadata ask for a member id", large_subscriptions),
        Attack("2,500 transactional ids and groups of 32 KB", long_names, _IN_A_DIRECTORY),
        Attack("2,000 clients join a group and leave at once", ghost_joins),
        Attack("900 clients join a group, and all leave", large_group),
        Attack(
            "60 clients send 2 MB of a request of 90 MB",
            parts_of_requests,
            _LITTLE_MEMORY,
        ),
        Attack("400 connections to a broker of 256 descriptors", no_descriptors, ("--data-dir", "{data}"), 256),
        Attack("3,000 connections send garbage; nobody reads the log", junk_that_is_logged),
        Attack("30 clients fetch 53 MiB and never read", never_reading_clients, _IN_A_DIRECTORY),
        Attack("20 connections pipeline requests", pipelined_requests),
        Attack("connections at full speed", connection_storm),
        Attack("transactions in 100,000 partitions", wide_attacks.wide_transactions),
        Attack("transactions with 99,900 offsets", wide_attacks.wide_offsets_of_transactions),
        Attack("8 clients produce to 9,990 partitions at a time", wide_attacks.wide_produces),
        Attack("8 clients fetch 99,900 committed offsets at a time", wide_attacks.all_committed_offsets),
        Attack("8 clients delete the records of 9,990 partitions at a time", wide_attacks.wide_record_deletions),
        Attack("topics of 10,000 partitions come and go", wide_attacks.wide_topic_deletions, _IN_A_DIRECTORY),
        Attack("1,000 clients ask for 20,000 topics and never read", wide_attacks.unread_metadata),
        Attack("100 clients ask for 2,000 topics' configs and never read", wide_attacks.unread_configs),
        Attack("60 clients fetch as much as they can", wide_attacks.greedy_fetches, _IN_A_DIRECTORY),
        Attack("3,000 connections close at once", wide_attacks.simultaneous_closes),
        Attack("batches of a topic that are compressed again", wide_attacks.compressed_again),
    )
}
