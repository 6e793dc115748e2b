"""Expiry of offsets, groups and transactional ids: Kafka's rules, in virtual time."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.coordinators.classic_group import ClassicGroup, Member
from aioproducer.broker.coordinators.expiry import expired_offsets, is_expired
from aioproducer.broker.state.committed_offset import NO_EXPIRY, CommittedPartition, OffsetAndMetadata
from aioproducer.broker.state.transaction_metadata import TransactionMetadata, TransactionState
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.end_txn import EndTxnRequest
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.list_groups import ListGroupsRequest
from aioproducer.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker.raw_clients.raw_client import RawClient
from tests.support.manual_clock import ManualClock
from tests.support.polling import eventually

RETENTION, NOW = 1_000, 100_000
EXPIRED, KEPT = NOW - RETENTION, NOW - RETENTION + 1


def offset(committed_ms: int, expires_ms: int = NO_EXPIRY) -> OffsetAndMetadata:
    return OffsetAndMetadata(7, -1, "", committed_ms, expires_ms)


def expired(group: ClassicGroup, **offsets: OffsetAndMetadata) -> list[str]:
    keyed = {(topic, 0): one for topic, one in offsets.items()}
    return [topic for topic, _ in expired_offsets(group, keyed, RETENTION, NOW)]


def subscription(*topics: str) -> bytes:
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names


def group_of(*topics: str, protocol_type: str = "consumer") -> ClassicGroup:
    """A stable group whose only member consumes these topics."""
    group = ClassicGroup("g")
    group.add(Member("m", None, "c", "", 1, 1, protocol_type, [("range", subscription(*topics))]))
    group.prepare_rebalance()
    group.members["m"].joined = True
    group.next_generation(0)
    group.assign({})
    return group


def empty(since_ms: int) -> ClassicGroup:
    group = group_of("t")
    group.prepare_rebalance()
    group.remove("m")
    group.next_generation(since_ms)
    return group


class TestOffsets:
    def test_without_members_ever_the_commit_counts(self) -> None:
        assert expired(ClassicGroup("g"), a=offset(EXPIRED), b=offset(KEPT)) == ["a"]

    def test_an_empty_group_counts_from_when_the_last_member_left(self) -> None:
        assert expired(empty(KEPT), a=offset(0)) == []
        assert expired(empty(EXPIRED), a=offset(NOW)) == ["a"]

    def test_members_keep_the_offsets_of_what_they_consume(self) -> None:
        assert expired(group_of("a"), a=offset(0), b=offset(EXPIRED), c=offset(KEPT)) == ["b"]

    def test_nothing_expires_while_the_subscription_is_unknown(self) -> None:
        assert expired(group_of("a", protocol_type="connect"), b=offset(0)) == []
        group = group_of("a")
        group.prepare_rebalance()
        assert expired(group, b=offset(0)) == []
        group = group_of("a")
        group.change_protocols(group.members["m"], [("range", b"garbage")])
        assert expired(group, b=offset(0)) == []

    def test_an_offset_with_its_own_expiry_expires_by_it(self) -> None:
        assert expired(ClassicGroup("g"), a=offset(0, NOW + 1), b=offset(NOW, NOW)) == ["b"]

    def test_the_times_of_a_commit(self) -> None:
        partition: CommittedPartition = OffsetCommitRequestPartition(0, 7, committed_metadata=None)
        assert OffsetAndMetadata.of(partition, NOW) == offset(NOW)
        assert OffsetAndMetadata.of(partition, NOW, RETENTION) == offset(NOW, NOW + RETENTION)


@pytest.mark.parametrize("state", TransactionState)
def test_a_transactional_id_expires_unless_its_transaction_is_under_way(state: TransactionState) -> None:
    metadata = TransactionMetadata("x", 1, 1)
    metadata.state, metadata.changed_ms = state, KEPT
    assert not is_expired(metadata, RETENTION, NOW)
    metadata.changed_ms = EXPIRED
    under_way = state is TransactionState.ONGOING or metadata.is_prepared
    assert is_expired(metadata, RETENTION, NOW) is not under_way


CONFIGS = {
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 1,
    "transactional.id.expiration.ms": 60_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 1,
}
"""The timers are real and short; what they see is a clock that the test moves."""


async def commit(client: RawClient, *topics: str) -> None:
    wanted = [OffsetCommitRequestTopic(topic, partitions=[OffsetCommitRequestPartition(0, 5)]) for topic in topics]
    answer = await client.request(OffsetCommitRequest("g", topics=wanted), 8)
    assert {topic.partitions[0].error_code for topic in answer.topics} == {ErrorCode.NONE}


@pytest.mark.parametrize("stored", [False, True])
async def test_a_group_whose_offsets_expire_is_removed_for_good(stored: bool, tmp_path: Path) -> None:
    clock = ManualClock()
    directory = tmp_path if stored else None
    async with EmbeddedCluster(configs=CONFIGS, clock=clock, data_dir=directory) as cluster:
        cluster.create_topic("a")
        cluster.create_topic("b")
        client = await RawClient.connect(cluster.bootstrap_servers)
        await commit(client, "a", "b")
        clock.advance(59)
        await commit(client, "b")
        clock.advance(1)
        await eventually(lambda: [one.topic for one in cluster.committed_offsets("g")] == ["b"], every=0.001)
        clock.advance(58)
        await asyncio.sleep(0.05)
        assert len((await client.request(ListGroupsRequest(), 4)).groups) == 1
        clock.advance(1)
        await eventually(lambda: not cluster.committed_offsets("g"), every=0.001)
        assert (await client.request(ListGroupsRequest(), 4)).groups == []
        await client.close()
    if stored:
        async with EmbeddedCluster(clock=clock, data_dir=directory) as cluster:
            assert not cluster.committed_offsets("g")


async def test_the_times_of_offsets_survive_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    async with EmbeddedCluster(clock=clock, data_dir=tmp_path) as cluster:
        cluster.create_topic("a")
        client = await RawClient.connect(cluster.bootstrap_servers)
        await commit(client, "a")
        await client.close()
    clock.advance(59.9)
    async with EmbeddedCluster(configs=CONFIGS, clock=clock, data_dir=tmp_path) as cluster:
        await asyncio.sleep(0.05)
        assert cluster.committed_offsets("g")
        clock.advance(0.1)
        await eventually(lambda: not cluster.committed_offsets("g"), every=0.001)


@pytest.mark.parametrize("stored", [False, True])
async def test_a_transactional_id_that_expires_is_unknown_and_gets_another_producer_id(
    stored: bool, tmp_path: Path
) -> None:
    clock = ManualClock()
    directory = tmp_path if stored else None
    async with EmbeddedCluster(configs=CONFIGS, clock=clock, data_dir=directory) as cluster:
        client = await RawClient.connect(cluster.bootstrap_servers)
        first = await client.request(InitProducerIdRequest("x", 60_000), 4)
        clock.advance(59.9)
        await asyncio.sleep(0.05)
        second = await client.request(InitProducerIdRequest("x", 60_000), 4)
        assert second.producer_id == first.producer_id
        clock.advance(60)
        await eventually(lambda: not cluster._transactions.transactions(), every=0.001)
        ended = await client.request(EndTxnRequest("x", second.producer_id, second.producer_epoch, True), 3)
        assert ended.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        third = await client.request(InitProducerIdRequest("x", 60_000), 4)
        assert third.producer_id > second.producer_id
        await client.close()
