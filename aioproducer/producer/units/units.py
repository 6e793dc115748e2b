"""All units of a producer: opens them, takes what they hold, and reports their ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, Final

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import (
    BufferExhaustedException,
    DeliveryError,
    IllegalStateException,
    KafkaError,
    Outcome,
    TransactionAbortedException,
)
from aioproducer.metrics import ProducerMetrics
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.admission.admission import Admission
from aioproducer.producer.hooks.hooks import Hooks
from aioproducer.producer.parking.parked_record import PARKED_COST
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.sender.sender_calls import SenderCalls
from aioproducer.producer.transactions.offsets import check
from aioproducer.producer.transactions.state import TransactionState
from aioproducer.producer.transactions.transaction_calls import TransactionCalls
from aioproducer.producer.units.unit import Unit
from aioproducer.producer.units.unit_committer import Spawn, UnitCommitter
from aioproducer.producer.units.unit_group import UnitGroup
from aioproducer.producer.units.unit_member import UnitMember
from aioproducer.producer.units.unit_memory import UnitMemory
from aioproducer.producer.units.unit_records import UnitRecords
from aioproducer.producer.units.unit_state import UnitState
from aioproducer.types import ConsumerGroupMetadata, OffsetAndMetadata, ProducerRecord, TopicPartition

log = logging.getLogger(__name__)

OFFSET_COST: Final = 400
"""Bytes of memory that the offset of a partition takes, besides its metadata."""


class Units:
    """One per transactional producer; ``taking`` and ``placed`` are for a mock (``UnitRecords``)."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: RecordAccumulator,
        lot: ParkingLot,
        sender: SenderCalls,
        transactions: TransactionCalls,
        hooks: Hooks,
        admission: Admission,
        metrics: ProducerMetrics,
        random: Random,
        *,
        spawn: Spawn,
        taking: Callable[[], object] | None = None,
        placed: Callable[[ProducerRecord], object] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._max_block_ms = config.max_block_ms
        self._transactions = transactions
        self._hooks = hooks
        self._admission = admission
        self._metrics = metrics
        self._open: dict[UnitMember, None] = {}
        self._idle: list[asyncio.Future[None]] = []
        self._group = UnitGroup(config.delivery_timeout_ms / 1000)
        self.memory = UnitMemory(config.buffer_memory)
        self._records = UnitRecords(config, accumulator, lot, sender, hooks, admission, taking, placed)
        self._committer = UnitCommitter(
            config,
            self._group,
            transactions,
            metrics,
            random,
            place=self._records.place,
            settled=self._settled,
            fatal=lambda: sender.fatal,
            spawn=spawn,
        )

    # What the producer asks

    def unit(self) -> Unit[Any, Any]:
        """A unit whose block has not begun."""
        return Unit(self, UnitMember())

    def in_use(self) -> bool:
        """Whether a unit has not ended, so that transactions by hand are refused."""
        return bool(self._open) or self._group.busy()

    @property
    def open(self) -> int:
        """Units whose block is running."""
        return len(self._open)

    @property
    def waiting(self) -> int:
        """Units whose block is over, and that have not ended."""
        return self._group.waiting + len(self._group.joined)

    async def finish(self) -> None:
        """Returns when every unit whose block is over has ended; the window is over at once. Units whose block is still
        running are refused from now on: nothing of them is sent."""
        self._committer.hurry()
        while self._group.busy():
            ended = self._loop.create_future()
            self._idle.append(ended)
            await ended

    def stop(self, error: KafkaError) -> None:
        """Fails every unit whose block is over, and ends the task that commits them."""
        self._committer.stop(error)

    # What units ask

    def check_usable(self, call: str) -> None:
        """Raises unless a unit may take records here and now."""
        self._admission.check_place()
        self._hooks.check_outside(call)
        self._admission.check_usable()

    def enter(self, member: UnitMember) -> None:
        """A block begins; IllegalStateException if transactions are used by hand, or not initialized."""
        self.check_usable("unit()")
        if member.state is not UnitState.OPEN or member in self._open:
            raise IllegalStateException("a unit has one block: call unit() for another one")
        status = self._transactions.status
        if status.state is not TransactionState.READY and not status.of_units:
            if status.state in (TransactionState.UNINITIALIZED, TransactionState.FATAL_ERROR):
                status.require("unit()", TransactionState.READY)
            raise IllegalStateException(
                f"unit() was called, but {status.state.value}, by hand: units have transactions of their own, so end "
                "it first"
            )
        self._open[member] = None

    def check_entered(self, member: UnitMember, call: str) -> None:
        """IllegalStateException unless the block of the unit is running."""
        if member in self._open:
            return
        if member.state is UnitState.OPEN:
            raise IllegalStateException(
                f"{call} was called, but the unit's block has not begun: use `async with producer.unit() as unit:`"
            )
        raise IllegalStateException(f"{call} was called, but the unit's block is over: {member.state.value}")

    def forgotten(self, member: UnitMember) -> None:
        """No caller has the unit any more; may be called in any thread."""
        if member not in self._open or self._loop.is_closed():
            return
        log.warning("a unit was dropped, because its block was entered and never left: nothing of it was sent")
        self._loop.call_soon_threadsafe(self.drop, member, "its block was never left")

    async def add(self, member: UnitMember, given: ProducerRecord) -> None:
        """Adds a record when there is room."""
        record = await self._records.prepare(given)
        try:
            await self._take(member, record.size + PARKED_COST, f"a record of {record.size} bytes for {record.topic!r}")
            self._check_still_open(member)
        except BaseException as error:
            self._intercepted_in_vain(given=record.given, error=error)
            raise
        member.records.append(record)

    async def add_offsets(
        self,
        member: UnitMember,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group: ConsumerGroupMetadata,
    ) -> None:
        """Adds offsets when there is room."""
        check(offsets, group)
        if not offsets:
            return
        own = dict(offsets)  # the caller's mapping may change
        size = sum(OFFSET_COST + _metadata_size(offset) for offset in own.values())
        await self._take(member, size, f"offsets of group {group.group_id!r}")
        self._check_still_open(member)
        member.offsets.append((group, own))

    async def _take(self, member: UnitMember, size: int, what: str) -> None:
        memory = self.memory
        memory.check(member, size)
        granted = self._loop.create_future()
        wait = memory.take(member, size, partial(_grant, granted))
        if wait is None:
            return
        try:
            async with asyncio.timeout(self._max_block_ms / 1000):
                await granted
        except TimeoutError:
            if not wait.over:
                self._metrics.buffer_exhausted(self._loop.time())
                raise BufferExhaustedException(
                    f"no memory for {what} within max.block.ms={self._max_block_ms}: units hold {memory.held} bytes, "
                    f"and buffer.memory={memory.total}; end units sooner, or raise buffer.memory"
                ) from None
        finally:
            memory.leave(wait)

    def _check_still_open(self, member: UnitMember) -> None:
        if member.state is UnitState.OPEN:
            return
        self.memory.release(member)  # it ended while this waited, and was charged again
        raise IllegalStateException("the unit's block ended while a send() of it waited: await it in the block")

    def drop(self, member: UnitMember, why: str) -> None:
        """The block raised: nothing of the unit is sent."""
        if member.state is not UnitState.OPEN:
            return
        member.become(UnitState.DROPPED)
        self._open.pop(member, None)
        error = DeliveryError.of(
            TransactionAbortedException(f"the record was not sent: the unit was dropped, because {why}"),
            Outcome.NOT_SENT,
        )
        member.error = error
        for record in member.records:
            self._intercepted_in_vain(record.given, error)
        self._let_go(member)

    async def commit(self, member: UnitMember) -> None:
        """The block is over: returns when the unit is committed, and raises what it failed with."""
        try:
            self.check_usable("the end of a unit")
        except KafkaError as refused:
            self.drop(member, "the producer is closed or has failed")
            raise DeliveryError.of(refused, Outcome.NOT_SENT) from refused.__cause__
        del self._open[member]
        if member.empty():
            member.become(UnitState.COMMITTED)
            return
        self._group.end(member, self._loop.time())
        self.memory.closed(member)
        self._committer.wake()
        try:
            await self.ended(member)
        except asyncio.CancelledError as cancelled:
            if self._group.withdraw(member):
                error = DeliveryError.of(
                    TransactionAbortedException("the unit was taken out, because its task was cancelled"),
                    Outcome.NOT_SENT,
                )
                self._settled(member, error, seen=True)
                cancelled.add_note("the unit was taken out: nothing of it is committed, or will be")
            elif not member.ended():
                cancelled.add_note("the unit is being committed: its outcome and wait() say how that ends")
            raise

    async def ended(self, member: UnitMember) -> None:
        """Returns when the unit is committed, and raises what it failed with."""
        while not member.ended():
            waiter = self._loop.create_future()
            member.waiters.append(waiter)
            await waiter
        self.raise_failure(member)

    def raise_failure(self, member: UnitMember) -> None:
        """Raises what the unit failed with, if it did."""
        if member.error is not None:
            raise member.error.fresh()

    # Ends

    def _settled(self, member: UnitMember, error: DeliveryError | None, *, seen: bool = False) -> None:
        """The unit is committed, or has failed: interceptors, metrics and waiters learn of it, in this order."""
        now = self._loop.time()
        member.error = error
        self._metrics.unit_ended(now, failed=error is not None)
        if self._hooks.any:
            self._tell_interceptors(member, error)
        self._let_go(member)
        if error is not None:
            member.deliveries = ()
            if not seen and not any(not waiter.done() for waiter in member.waiters):
                log.warning("a unit failed, and no caller was waiting: %s (%s)", error, error.outcome.value)
        waiters, member.waiters = member.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        if not self._group.busy():
            idle, self._idle = self._idle, []
            for one in idle:
                if not one.done():
                    one.set_result(None)

    def _tell_interceptors(self, member: UnitMember, error: DeliveryError | None) -> None:
        if error is not None:
            for record in member.records:
                self._intercepted_in_vain(record.given, error)
        elif self._hooks.intercepts():
            for record, delivery in zip(member.records, member.deliveries, strict=True):
                result, index = delivery.place()
                self._hooks.on_acknowledgement(result, [(index, record.headers or ())])

    def _intercepted_in_vain(self, given: ProducerRecord, error: BaseException) -> None:
        if self._hooks.intercepts():
            self._hooks.on_send_error(given, error)

    def _let_go(self, member: UnitMember) -> None:
        """The unit holds nothing any more."""
        member.records = []
        member.offsets = []
        self.memory.release(member)


def _grant(granted: asyncio.Future[None]) -> None:
    if not granted.done():
        granted.set_result(None)


def _metadata_size(offset: OffsetAndMetadata | int) -> int:
    return 0 if isinstance(offset, int) else len(offset.metadata)
