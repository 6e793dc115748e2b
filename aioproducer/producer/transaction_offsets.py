"""Offsets of a group as a part of a transaction: AddOffsetsToTxn and TxnOffsetCommit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aioproducer.errors import IllegalArgumentException
from aioproducer.net.coordinators import GROUP
from aioproducer.producer.operation import Operation
from aioproducer.producer.transaction_state import TransactionState
from aioproducer.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from aioproducer.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from aioproducer.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from aioproducer.producer.transaction_manager import TransactionManager

_LAST_FIRST_PROTOCOL_VERSION = 4

CALL = "send_offsets_to_transaction"

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]


def check(offsets: Offsets, group: ConsumerGroupMetadata) -> None:
    """IllegalArgumentException unless it is a group, of a member if it tells of a generation, and all are offsets."""
    if not isinstance(group, ConsumerGroupMetadata):
        raise IllegalArgumentException(f"the group is a {type(group).__name__}, no ConsumerGroupMetadata and no str")
    if not group.group_id:
        raise IllegalArgumentException("the group id is empty")
    if group.generation_id > 0 and not group.member_id:
        raise IllegalArgumentException(
            f"{group} is of generation {group.generation_id}, but without a member id: pass what the consumer tells"
        )
    for (topic, partition), given in offsets.items():
        offset = given.offset if isinstance(given, OffsetAndMetadata) else given
        if not isinstance(offset, int):
            raise IllegalArgumentException(f"the offset of {topic}-{partition} is a {type(offset).__name__}, no int")
        if offset < 0:
            raise IllegalArgumentException(f"offset {offset} of {topic}-{partition} is negative")


class TransactionOffsets:
    """Makes offsets a part of the transaction, those of one call after those of another."""

    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager
        self.operation: Operation | None = None
        """The last call, until somebody has been told of its end."""
        self._asked: tuple[Offsets, ConsumerGroupMetadata] | None = None
        """What it is for."""

    async def send(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None:
        """Returns when they are a part of the transaction; TimeoutException after max.block.ms, and it goes on: calling
        with the same again waits for its end.
        """
        check(offsets, group)
        if not offsets:
            return
        asked = dict(offsets), group  # as they are now, whatever becomes of the caller's mapping
        manager = self._manager
        until = manager.until()
        while (operation := self.operation) is not None and self._asked != asked:  # others' offsets: these come after
            await manager.wait(operation, until)
            self._leave(operation)
        if operation is None:
            manager.status.require(CALL, TransactionState.IN_TRANSACTION)
            operation = self.operation = Operation(CALL, self._send(*asked))
            self._asked = asked
        await manager.wait(operation, until)
        if self.operation is operation:
            self.operation = None
        operation.result()

    async def _send(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None:
        """Asks both coordinators."""
        manager = self._manager
        identity, second_protocol = manager.identity, manager.second_protocol
        if not second_protocol:
            await manager.ask(
                AddOffsetsToTxnRequest(manager.transactional_id, *identity, group.group_id),
                AddOffsetsToTxnResponse,
                lambda response: [response.error_code],
            )
        manager.started()
        request = TxnOffsetCommitRequest(
            manager.transactional_id,
            group.group_id,
            *identity,
            group.generation_id,
            group.member_id,
            group.group_instance_id,
            _topics(offsets),
        )
        await manager.ask(
            request,
            TxnOffsetCommitResponse,
            lambda response: [partition.error_code for topic in response.topics for partition in topic.partitions],
            None if second_protocol else _LAST_FIRST_PROTOCOL_VERSION,
            coordinator=(GROUP, group.group_id),
        )

    async def settled(self) -> None:
        """Returns when nothing is under way: its answer may not come after the end of the transaction."""
        if (operation := self.operation) is not None:
            await operation.settled()
            self._leave(operation)

    def _leave(self, operation: Operation) -> None:
        if self.operation is operation:
            self.operation = None
            operation.leave()


def _topics(offsets: Offsets) -> list[TxnOffsetCommitRequestTopic]:
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for (topic, partition), given in offsets.items():
        offset = OffsetAndMetadata(given) if isinstance(given, int) else given
        topics.setdefault(topic, TxnOffsetCommitRequestTopic(topic)).partitions.append(
            TxnOffsetCommitRequestPartition(partition, offset.offset, offset.leader_epoch, offset.metadata)
        )
    return list(topics.values())
