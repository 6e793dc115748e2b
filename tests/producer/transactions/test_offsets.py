"""Offsets as a part of a transaction: what they may be, and who may refuse them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from aioproducer.errors import (
    IllegalArgumentException,
    IllegalStateException,
    TimeoutException,
    TransactionAbortableException,
    UnsupportedVersionException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from tests.producer.transactions.test_transaction_manager import goes_on
from tests.support.leaks import no_leaks as no_leaks
from tests.support.scripted_broker import Held, edited
from tests.support.transactional import PROTOCOLS, a_cluster, transactional

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]

P = TopicPartition("t", 0)


@PROTOCOLS
async def test_a_group_whose_coordinator_may_not_be_asked_fails_the_transaction(protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()

        def refuse(response: Any) -> None:
            response.coordinators[0].error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED

        cluster.broker.script(ApiKey.FIND_COORDINATOR, edited(refuse))
        await producer.begin_transaction()
        with pytest.raises(TransactionAbortableException, match="GROUP_AUTHORIZATION_FAILED"):
            await producer.send_offsets_to_transaction({P: 1}, "g")
        await producer.abort_transaction()
        await goes_on(cluster, producer)


async def test_metadata_of_group_and_offsets_is_passed_on() -> None:
    async with a_cluster() as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        group = ConsumerGroupMetadata("g", generation_id=-1, member_id="", group_instance_id="one")
        await producer.send_offsets_to_transaction({P: OffsetAndMetadata(7, "note", 3)}, group)
        (request,) = cluster.broker.sent(ApiKey.TXN_OFFSET_COMMIT)
        assert request.group_instance_id == "one"
        (told,) = request.topics[0].partitions
        assert (told.committed_offset, told.committed_metadata, told.committed_leader_epoch) == (7, "note", 3)
        await producer.abort_transaction()


async def test_no_members_are_sent_to_a_broker_that_knows_none() -> None:
    """Before version 3 a member could not be named, and its generation not be checked (KIP-447)."""
    old = {ApiKey.TXN_OFFSET_COMMIT: 2}
    async with a_cluster(1, newest_versions=old) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_offsets_to_transaction({P: 1}, "g")
        with pytest.raises(UnsupportedVersionException):
            await producer.send_offsets_to_transaction({P: 1}, ConsumerGroupMetadata("g", 3, "member"))


@pytest.mark.parametrize(
    ("offsets", "group", "words"),
    [
        ({P: 1}, ConsumerGroupMetadata(""), "the group id is empty"),
        ({P: 1}, ConsumerGroupMetadata("g", 2), "without a member id"),
        ({P: 1}, None, "the group is of type NoneType"),
        ({P: 1}, "\ud800", "the group id is .* cannot be encoded"),
        ({P: 1}, "g" * 40_000, "the group id is .* longer than"),
        ({P: 1}, ConsumerGroupMetadata("g", 2, "m\ud800"), "the member id"),
        ({P: 1}, ConsumerGroupMetadata("g", -1, "", "\ud800"), "the group instance id"),
        ({P: 1}, ConsumerGroupMetadata("g", 2**31, "m"), "the generation of group 'g' is 2147483648"),
        ({TopicPartition("\ud800", 0): 1}, "g", "the topic is .* cannot be encoded"),
        ({TopicPartition("t", 2**31): 1}, "g", "the partition of topic 't' is 2147483648; it must be 0 to 2147483647"),
        ({P: -1}, "g", "the offset of t-0 is -1"),
        ({P: 2**63}, "g", "the offset of t-0 is 9223372036854775808"),
        ({P: "1"}, "g", "the offset of t-0 is of type str"),
        ({P: OffsetAndMetadata(1, "\ud800")}, "g", "the metadata of t-0 is .* cannot be encoded"),
        ({P: OffsetAndMetadata(1, "", 2**31)}, "g", "the leader epoch of t-0 is 2147483648"),
    ],
)
async def test_an_impossible_offset_or_group_is_refused_and_costs_nothing(offsets: Any, group: Any, words: str) -> None:
    async with a_cluster() as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        with pytest.raises(IllegalArgumentException, match=words):
            await producer.send_offsets_to_transaction(offsets, group)
        await producer.send_offsets_to_transaction({}, "g")
        await producer.commit_transaction()
        assert cluster.broker.count(ApiKey.TXN_OFFSET_COMMIT) == 0


@PROTOCOLS
async def test_calling_again_waits_for_the_end_of_the_same_and_sends_nothing_more(protocol: int) -> None:
    """Where a round trip takes most of max.block.ms, whoever sent them anew each time would never see the end."""
    async with a_cluster(protocol) as cluster, transactional(cluster, max_block_ms=500) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        held, offsets = Held(), {P: 1}
        cluster.broker.script(ApiKey.TXN_OFFSET_COMMIT, held)
        for _ in range(2):
            with pytest.raises(TimeoutException, match="calling it again waits for its end"):
                await producer.send_offsets_to_transaction(offsets, "g")
        others = asyncio.create_task(producer.send_offsets_to_transaction({P: 2}, "g"))
        offsets[P] = 3
        await asyncio.sleep(0)
        held.release()
        await producer.send_offsets_to_transaction({P: 1}, "g")
        await others
        sent = cluster.broker.sent(ApiKey.TXN_OFFSET_COMMIT)
        assert [one.topics[0].partitions[0].committed_offset for one in sent] == [1, 2]
        await producer.commit_transaction()
        assert cluster.committed_offsets("g") == {P: 2}


async def test_calling_again_tells_what_the_first_call_ended_with() -> None:
    async with a_cluster() as cluster, transactional(cluster, max_block_ms=500) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()

        def refuse(response: Any) -> None:
            response.topics[0].partitions[0].error_code = ErrorCode.ILLEGAL_GENERATION

        cluster.broker.script(ApiKey.TXN_OFFSET_COMMIT, Held(), edited(refuse))
        with pytest.raises(TimeoutException):
            await producer.send_offsets_to_transaction({P: 1}, "g")
        cluster.broker.drop_connections()
        with pytest.raises(TransactionAbortableException, match="ILLEGAL_GENERATION"):
            await producer.send_offsets_to_transaction({P: 1}, "g")
        await producer.abort_transaction()
        await goes_on(cluster, producer)


async def test_the_same_offsets_in_the_next_transaction_are_sent_again() -> None:
    async with a_cluster() as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        for _ in range(2):
            async with producer.transaction():
                await producer.send_offsets_to_transaction({P: 1}, "g")
        assert cluster.broker.count(ApiKey.TXN_OFFSET_COMMIT) == 2


@PROTOCOLS
async def test_offsets_cancelled_while_they_wait_for_others_fail_the_transaction(protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        held = Held()
        cluster.broker.script(ApiKey.TXN_OFFSET_COMMIT, held)
        await producer.begin_transaction()
        first = asyncio.create_task(producer.send_offsets_to_transaction({P: 1}, "g"))
        await cluster.broker.received(ApiKey.TXN_OFFSET_COMMIT)
        second = asyncio.create_task(producer.send_offsets_to_transaction({P: 2}, "g"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        assert second.cancelled()
        held.release()
        await first
        with pytest.raises(TransactionAbortableException, match="cancelled while it waited for other offsets"):
            await producer.commit_transaction()
        await producer.abort_transaction()
        assert not cluster.committed_offsets("g")
        await goes_on(cluster, producer)


@PROTOCOLS
async def test_offsets_on_their_way_are_committed_though_their_task_is_cancelled(protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        held = Held()
        cluster.broker.script(ApiKey.TXN_OFFSET_COMMIT, held)
        await producer.begin_transaction()
        call = asyncio.create_task(producer.send_offsets_to_transaction({P: 1}, "g"))
        await cluster.broker.received(ApiKey.TXN_OFFSET_COMMIT)
        call.cancel()
        await asyncio.wait([call])
        with pytest.raises(IllegalStateException, match="send_offsets_to_transaction has not ended"):
            await producer.commit_transaction()
        held.release()
        await producer.send_offsets_to_transaction({P: 1}, "g")
        await producer.commit_transaction()
        assert cluster.committed_offsets("g") == {P: 1}
        assert cluster.broker.count(ApiKey.TXN_OFFSET_COMMIT) == 1
