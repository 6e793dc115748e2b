"""Offsets as a part of a transaction: what they may be, and who may refuse them."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from aioproducer.error_code import ErrorCode
from aioproducer.errors import IllegalArgumentException, TransactionAbortableException, UnsupportedVersionException
from aioproducer.protocol.api_keys import ApiKey
from tests.producer.test_transaction_manager import goes_on
from tests.producer.test_transactions import PROTOCOLS, a_cluster, transactional
from tests.support.leaks import no_leaks as no_leaks
from tests.support.scripted_broker import edited

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


async def test_what_a_consumer_tells_of_its_group_and_offsets_is_passed_on() -> None:
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


async def test_a_broker_that_knows_no_members_is_told_of_none() -> None:
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
        ({P: 1}, None, "the group is a NoneType"),
        ({P: -1}, "g", "offset -1 of t-0"),
        ({P: "1"}, "g", "of t-0 is a str"),
    ],
)
async def test_what_cannot_be_is_refused_and_costs_nothing(offsets: Any, group: Any, words: str) -> None:
    async with a_cluster() as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        with pytest.raises(IllegalArgumentException, match=words):
            await producer.send_offsets_to_transaction(offsets, group)
        await producer.send_offsets_to_transaction({}, "g")
        await producer.commit_transaction()
        assert cluster.broker.count(ApiKey.TXN_OFFSET_COMMIT) == 0
