"""A unit as its group sees it: what it holds, where it is, and how it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, final

from aioproducer.errors import DeliveryError
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.units.unit_state import UnitState, check_transition
from aioproducer.types import ConsumerGroupMetadata, Headers, OffsetAndMetadata, ProducerRecord, TopicPartition

GroupOffsets = tuple[ConsumerGroupMetadata, dict[TopicPartition, OffsetAndMetadata | int]]


class UnitRecord(NamedTuple):
    """A record of a unit, checked and serialized. ``size`` is the most bytes that a batch of it alone takes."""

    given: ProducerRecord
    """As the interceptors left it."""
    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp_ms: int
    headers: Headers | None
    size: int


@final
class UnitMember:
    """Made with its unit. Times are the loop's, in seconds."""

    __slots__ = (
        "deadline",
        "deliveries",
        "error",
        "held",
        "last_deadline",
        "number",
        "offsets",
        "records",
        "setback",
        "state",
        "waiters",
    )

    def __init__(self) -> None:
        self.state = UnitState.OPEN
        self.records: list[UnitRecord] = []
        self.offsets: list[GroupOffsets] = []
        self.held = 0
        """The bytes of memory that it has taken."""
        self.number = 0
        """Its place in the order of the ends of blocks."""
        self.deadline = 0.0
        """No transaction takes it later than this, unless its time starts again."""
        self.last_deadline = 0.0
        """No transaction takes it later than this."""
        self.deliveries: Sequence[Delivery] = ()
        """Of its records, in the transaction that it is in, or was committed in."""
        self.setback: DeliveryError | None = None
        """Why the last transaction that it was in was aborted, if that was its own fault or a reason is known."""
        self.error: DeliveryError | None = None
        """What it has failed with."""
        self.waiters: list[Any] = []
        """Futures of the tasks that wait for its end."""

    def become(self, state: UnitState) -> None:
        check_transition(self.state, state)
        self.state = state

    def ended(self) -> bool:
        return self.state in (UnitState.COMMITTED, UnitState.FAILED, UnitState.DROPPED)

    def empty(self) -> bool:
        """It has neither records nor offsets, so there is nothing to commit."""
        return not (self.records or self.offsets)
