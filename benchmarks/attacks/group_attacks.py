"""Attacks by consumer groups and transactions, and the offsets that they commit."""

from __future__ import annotations

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from aioproducer.protocol.messages.end_txn import EndTxnRequest
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from aioproducer.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from aioproducer.protocol.messages.list_groups import ListGroupsRequest
from aioproducer.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aioproducer.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from aioproducer.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from benchmarks.attacks import steps
from benchmarks.attacks.hostile_client import HOSTILE, HostileClient, HostileConnection, frame

JOIN, OFFSET_COMMIT, _OFFSET_FETCH, _INIT, _ADD, _COMMIT_IN_TRANSACTION, _END = 5, 8, 8, 4, 3, 3, 3
"""The versions that attacks use."""


def many_groups(client: HostileClient) -> steps.Attacking:
    yield
    connection = client.connect()
    for number in range(20_000):
        connection.ask(_commit(f"group-{number}"), OFFSET_COMMIT)
    for _ in client.rounds():
        assert len(connection.ask(ListGroupsRequest(), 4).groups) == 20_000


def wide_commits(client: HostileClient) -> steps.Attacking:
    connections = [client.connect() for _ in range(8)]
    for name in ("wide", "wider"):
        steps.wide_topic(connections[0], name, 9_990)
    partitions = [OffsetCommitRequestPartition(number, 1) for number in range(9_990)]
    topics = [OffsetCommitRequestTopic(name, partitions=partitions) for name in ("wide", "wider")]
    request = frame(OffsetCommitRequest("hostile", topics=topics), OFFSET_COMMIT)
    yield
    for _ in client.rounds():
        steps.all_at_once(connections, request)


def all_committed_offsets(client: HostileClient) -> steps.Attacking:
    connection = client.connect()
    for topic in steps.WIDE_TOPICS:
        steps.wide_topic(connection, topic, len(steps.WIDE_PARTITIONS))
        partitions = [OffsetCommitRequestPartition(number, 1) for number in steps.WIDE_PARTITIONS]
        topics = [OffsetCommitRequestTopic(topic, partitions=partitions)]
        connection.ask(OffsetCommitRequest(HOSTILE, topics=topics), OFFSET_COMMIT)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(HOSTILE, topics=None)])
    return steps.at_once(client, request, _OFFSET_FETCH)


def unknown_members_leave(client: HostileClient) -> steps.Attacking:
    request = frame(LeaveGroupRequest("hostile", members=[MemberIdentity("m")] * 19_990), 5)
    yield
    connections = [client.connect() for _ in range(8)]
    for _ in client.rounds():
        steps.all_at_once(connections, request)


def many_protocols(client: HostileClient) -> steps.Attacking:
    protocols = [JoinGroupRequestProtocol(f"protocol-{number}", b"x" * 100) for number in range(100)]
    yield
    members = []
    for number in range(900):
        members.append(client.connect())
        join = JoinGroupRequest("large", 1_800_000, 1_800_000, "", f"i{number}", "consumer", protocols)
        members[-1].send(join, JOIN)
    client.wait()


def large_subscriptions(client: HostileClient) -> steps.Attacking:
    protocols = [JoinGroupRequestProtocol("range", bytes(1_000_000))]
    yield
    connection = client.connect()
    for number in range(700):
        request = JoinGroupRequest(f"large-{number}", 1_800_000, 1_800_000, "", None, "consumer", protocols)
        assert connection.ask(request, JOIN).error_code == ErrorCode.MEMBER_ID_REQUIRED
    client.wait()


def long_names(client: HostileClient) -> steps.Attacking:
    yield
    connection = client.connect()
    for number in range(2_000):
        connection.ask(InitProducerIdRequest(f"{number:05}" + "x" * 32_000, 60_000), 4)
    for number in range(500):
        connection.ask(_commit(f"{number:05}" + "y" * 32_000, "m" * 4_000), OFFSET_COMMIT)


def ghost_joins(client: HostileClient) -> steps.Attacking:
    yield
    for number in range(2_000):
        connection = client.connect()
        connection.send(_join("ghosts", f"i{number}"), JOIN)
        connection.close()
    client.wait()


def large_group(client: HostileClient) -> steps.Attacking:
    yield
    members = []
    for number in range(900):
        members.append(client.connect())
        members[-1].send(_join("large", f"i{number}"), JOIN)
    for member in members:
        member.close()
    client.wait()


def wide_transactions(client: HostileClient) -> steps.Attacking:
    connection = steps.with_wide_topics(client)
    identity = _producer(connection)
    yield
    for _ in client.rounds():
        for topic in steps.WIDE_TOPICS:
            wanted = [AddPartitionsToTxnTopic(topic, list(steps.WIDE_PARTITIONS))]
            add = AddPartitionsToTxnRequest([], HOSTILE, *identity, wanted)
            while ErrorCode.CONCURRENT_TRANSACTIONS in _codes(connection, add):
                pass
        assert connection.ask(EndTxnRequest(HOSTILE, *identity, True), _END).error_code == ErrorCode.NONE


def wide_transactions_on_disk(client: HostileClient) -> steps.Attacking:
    return wide_transactions(client)


def wide_offsets_of_transactions(client: HostileClient) -> steps.Attacking:
    connection = steps.with_wide_topics(client)
    identity = _producer(connection)
    add = AddPartitionsToTxnRequest([], HOSTILE, *identity, [AddPartitionsToTxnTopic(HOSTILE, [0])])
    yield
    for _ in client.rounds():
        while ErrorCode.CONCURRENT_TRANSACTIONS in _codes(connection, add):
            pass
        for topic in steps.WIDE_TOPICS:
            partitions = [TxnOffsetCommitRequestPartition(number, 1) for number in steps.WIDE_PARTITIONS]
            wanted = [TxnOffsetCommitRequestTopic(topic, partitions)]
            request = TxnOffsetCommitRequest(HOSTILE, HOSTILE, *identity, topics=wanted)
            connection.ask(request, _COMMIT_IN_TRANSACTION)
        connection.ask(EndTxnRequest(HOSTILE, *identity, True), _END)


def _producer(connection: HostileConnection) -> tuple[int, int]:
    answer = connection.ask(InitProducerIdRequest(HOSTILE, 60_000), _INIT)
    return answer.producer_id, answer.producer_epoch


def _codes(connection: HostileConnection, request: AddPartitionsToTxnRequest) -> set[int]:
    response = connection.ask(request, _ADD)
    topics = response.results_by_topic_v3_and_below
    return {one.partition_error_code for of in topics for one in of.results_by_partition}


def _join(group: str, instance: str) -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol("range", b"x" * 100)]
    return JoinGroupRequest(group, 1_800_000, 1_800_000, "", instance, "consumer", protocols)


def _commit(group: str, metadata: str = "") -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(0, 1, committed_metadata=metadata)
    return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(HOSTILE, partitions=[partition])])
