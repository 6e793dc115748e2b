"""Offsets of a group as a part of a transaction: AddOffsetsToTxn and TxnOffsetCommit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from aioproducer.configs.config_def import INT_MAX, LONG_MAX
from aioproducer.errors import IllegalArgumentException, KafkaError
from aioproducer.producer.transactions.coordinator import TransactionCoordinator
from aioproducer.producer.transactions.operation_slot import OperationSlot
from aioproducer.producer.transactions.state import TransactionState
from aioproducer.producer.transactions.status import TransactionStatus
from aioproducer.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from aioproducer.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from aioproducer.protocol.text_check import check_text, check_topic
from aioproducer.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

CALL = "send_offsets_to_transaction"

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]


def check(offsets: Offsets, group: ConsumerGroupMetadata) -> None:
    """Raises IllegalArgumentException for an invalid group, a generation without a member id, or invalid offsets."""
    if not isinstance(group, ConsumerGroupMetadata):
        raise IllegalArgumentException(
            f"the group is of type {type(group).__name__}; it must be a ConsumerGroupMetadata or a str"
        )
    if not group.group_id:
        raise IllegalArgumentException("the group id is empty")
    check_text("the group id", group.group_id)
    check_text("the member id", group.member_id)
    if group.group_instance_id is not None:
        check_text("the group instance id", group.group_instance_id)
    _check_number("the generation", group.generation_id, f"of group {group.group_id!r}", INT_MAX, least=-1)
    if group.generation_id > 0 and not group.member_id:
        raise IllegalArgumentException(
            f"{group} is of generation {group.generation_id}, but without a member id: pass the consumer's metadata"
        )
    for (topic, partition), given in offsets.items():
        check_topic(topic)
        _check_number("the partition", partition, f"of topic {topic!r}", INT_MAX)
        of = f"of {topic}-{partition}"
        offset = given if isinstance(given, OffsetAndMetadata) else OffsetAndMetadata(given)
        _check_number("the offset", offset.offset, of, LONG_MAX)
        _check_number("the leader epoch", offset.leader_epoch, of, INT_MAX, least=-1)
        if offset.metadata:
            check_text(f"the metadata {of}", offset.metadata)


def _check_number(what: str, number: Any, of: str, most: int, *, least: int = 0) -> None:
    if not isinstance(number, int):
        raise IllegalArgumentException(f"{what} {of} is of type {type(number).__name__}; it must be an int")
    if not least <= number <= most:
        raise IllegalArgumentException(f"{what} {of} is {number}; it must be {least} to {most}")


class TransactionOffsets:
    """Adds offsets to the transaction, one call after the other.

    ``missing(error)`` reports offsets that will not be sent, if no caller learns of that.
    """

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        status: TransactionStatus,
        slot: OperationSlot,
        missing: Callable[[KafkaError], None],
    ) -> None:
        self._coordinator = coordinator
        self._status = status
        self._missing = missing
        self.slot = slot
        """Holds the last call until a caller has received its end."""
        self._asked: tuple[Offsets, ConsumerGroupMetadata] | None = None
        """The group and offsets of that call."""
        self._pausing = False
        """It waits for the markers of the last transaction, and has sent nothing."""

    async def send(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None:
        """Returns when they are part of the transaction; TimeoutException after max.block.ms. The request continues,
        and the same call again waits for its end.
        """
        check(offsets, group)
        if not offsets:
            return
        asked = dict(offsets), group  # a copy: the caller's mapping may change
        slot = self.slot
        until = slot.until()
        transaction = self._status.transaction
        try:
            while slot.name and self._asked != asked:  # another call's offsets: these come after
                await slot.vacated(until)
        except asyncio.CancelledError:
            if self._status.transaction == transaction:
                self._missing(KafkaError(f"{CALL} was cancelled while it waited for other offsets to be sent"))
            raise
        if not slot.name:
            self._status.require(CALL, TransactionState.IN_TRANSACTION)
            slot.begin(CALL, self._send(*asked))
            self._asked = asked
        await slot.ended(until)

    def give_up(self, why: KafkaError) -> None:
        """Ends a call that has sent nothing: the transaction is aborted."""
        if self._pausing:
            self.slot.cancel(why)

    async def _send(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None:
        """Asks both coordinators."""
        coordinator = self._coordinator
        who = coordinator.transactional_id
        identity = coordinator.identity
        if (left := coordinator.pause.left(asyncio.get_running_loop().time())) > 0:
            self._pausing = True
            try:
                await asyncio.sleep(left)
            finally:
                self._pausing = False
        if not coordinator.protocol.second:
            await coordinator.ask(
                AddOffsetsToTxnRequest(who, *identity, group.group_id),
                AddOffsetsToTxnResponse,
                lambda response: [response.error_code],
            )
        coordinator.started()
        request = TxnOffsetCommitRequest(
            who,
            group.group_id,
            *identity,
            group.generation_id,
            group.member_id,
            group.group_instance_id,
            _topics(offsets),
        )
        await coordinator.ask(
            request,
            TxnOffsetCommitResponse,
            lambda response: [partition.error_code for topic in response.topics for partition in topic.partitions],
            group=group.group_id,
        )


def _topics(offsets: Offsets) -> list[TxnOffsetCommitRequestTopic]:
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for (topic, partition), given in offsets.items():
        offset = OffsetAndMetadata(given) if isinstance(given, int) else given
        topics.setdefault(topic, TxnOffsetCommitRequestTopic(topic)).partitions.append(
            TxnOffsetCommitRequestPartition(partition, offset.offset, offset.leader_epoch, offset.metadata)
        )
    return list(topics.values())
