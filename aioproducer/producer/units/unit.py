"""A unit of work, as its user sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, overload

from aioproducer.errors import DeliveryError, IllegalStateException, Outcome
from aioproducer.producer.admission.admission import record_of
from aioproducer.producer.units.unit_member import UnitMember
from aioproducer.producer.units.unit_state import UnitState
from aioproducer.record_metadata import RecordMetadata
from aioproducer.types import ConsumerGroupMetadata, Headers, K, OffsetAndMetadata, ProducerRecord, TopicPartition, V

if TYPE_CHECKING:
    from aioproducer.producer.units.units import Units


class Unit(Generic[K, V]):
    """The records and offsets of one handler, committed as a whole or not at all; :meth:`KafkaProducer.unit` makes it.

    ::

        async with producer.unit() as unit:
            await unit.send("orders", order, key=customer)
            await unit.send("audit", entry, key=customer)
        # both are committed

    Nothing is sent before the end of the block. If the block raises or is cancelled, nothing is sent at all. At its end
    the unit joins the transaction that is open, which other units share, and the block returns when that is committed.
    It raises the error that the unit failed with; its ``outcome`` says whether the unit may be committed all the same.

    A task that is cancelled at the end of its block leaves at once. A unit that is in no transaction by then is taken
    out; otherwise the commit continues, and ``outcome`` and ``wait()`` say how it ended.
    """

    __slots__ = ("_member", "_sending", "_units", "_withdrawn")

    def __init__(self, units: Units, member: UnitMember) -> None:
        self._units = units
        self._member = member
        self._sending = 0
        self._withdrawn = False

    def __del__(self) -> None:
        self._units.forgotten(self._member)

    # In the block

    @overload
    async def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> None: ...

    @overload
    async def send(self, topic: ProducerRecord[K | None, V | None]) -> None: ...

    async def send(
        self,
        topic: Any,
        value: Any = None,
        *,
        key: Any = None,
        partition: Any = None,
        timestamp_ms: Any = None,
        headers: Any = None,
    ) -> None:
        """Adds a record to the unit; the arguments are those of :meth:`KafkaProducer.send`.

        It returns when the unit holds the record. It waits for serializers, for the metadata of a new topic, and for
        memory, each at most max.block.ms; all units together hold at most twice buffer.memory. ``timestamp_ms`` None
        means now.

        Raises IllegalStateException outside the unit's block (``async with``), and what keeps the record out:
        SerializationException, IllegalArgumentException, RecordTooLargeException,
        PartitionerException, TimeoutException, BufferExhaustedException, the error of a topic that brokers refuse, and
        UnitTooLargeException if the unit would hold more than buffer.memory. The unit goes on without the record if the
        block catches the error. A unit with a ``send`` that was cancelled cannot be committed.
        """
        self._check_open("unit.send()")
        record = record_of(topic, value, key, partition, timestamp_ms, headers)
        self._sending += 1
        try:
            await self._units.add(self._member, record)
        except asyncio.CancelledError:
            self._withdrawn = True
            raise
        finally:
            self._sending -= 1

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: ConsumerGroupMetadata | str
    ) -> None:
        """Adds a group's offsets (of the next records to read) to the unit, as
        :meth:`KafkaProducer.send_offsets_to_transaction` adds them to a transaction.

        Units that share a transaction send the offsets of a group together; where two name the same partition, the
        offset of the unit that ended later counts.
        """
        self._check_open("unit.send_offsets()")
        metadata = ConsumerGroupMetadata(group) if isinstance(group, str) else group
        self._sending += 1
        try:
            await self._units.add_offsets(self._member, offsets, metadata)
        except asyncio.CancelledError:
            self._withdrawn = True
            raise
        finally:
            self._sending -= 1

    def _check_open(self, call: str) -> None:
        self._units.check_usable(call)
        self._units.check_entered(self._member, call)

    # The block

    async def __aenter__(self) -> Self:
        self._units.enter(self._member)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._units.check_entered(self._member, "the end of a unit")
        if exc is not None:
            self._units.drop(self._member, f"its block raised {type(exc).__name__}")
            return
        if self._sending or self._withdrawn:
            why = "a send() of it was cancelled" if self._withdrawn else "a send() of it has not returned: await it"
            self._units.drop(self._member, why)
            raise DeliveryError.of(
                IllegalStateException(f"the unit was not committed, and nothing of it was sent: {why}"),
                Outcome.NOT_SENT,
            )
        await self._units.commit(self._member)

    # Its end

    def done(self) -> bool:
        """Whether the unit is committed, or has failed, or was never to be sent."""
        return self._member.ended()

    @property
    def committed(self) -> bool:
        """Whether the unit is known to be committed."""
        return self._member.state is UnitState.COMMITTED

    @property
    def outcome(self) -> Outcome | None:
        """``None`` while it is not known, and when the unit is committed; else NOT_SENT (no ``read_committed`` reader
        gets anything of the unit) or UNKNOWN."""
        if self._member.state is UnitState.DROPPED:
            return Outcome.NOT_SENT
        return None if self._member.error is None else self._member.error.outcome

    async def wait(self) -> None:
        """Returns when the unit is committed, and raises the error that it failed with: for a caller that was cancelled
        at the end of its block. IllegalStateException if the block is not over, or was left by an exception."""
        if self._member.state is UnitState.OPEN:
            raise IllegalStateException("wait() was called, but the unit's block is not over")
        await self._units.ended(self._member)

    def result(self) -> list[RecordMetadata]:
        """The metadata of the records, in the order in which the unit took them; raises the error that it failed with,
        or IllegalStateException while it is not done."""
        self._units.raise_failure(self._member)
        if not self.committed:
            raise IllegalStateException(f"the unit is not committed: {self._member.state.value}")
        return [delivery.result() for delivery in self._member.deliveries]

    def __repr__(self) -> str:
        return f"<Unit {self._member.state.name.lower()}: {self._member.state.value}>"
