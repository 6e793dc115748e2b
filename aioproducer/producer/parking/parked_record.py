"""A record that waits because it could not be appended at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from aioproducer.errors import DeliveryError
from aioproducer.producer.delivery.audience import Audience
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import PENDING, ProduceResult
from aioproducer.producer.hooks.pending_serialization import Serialization
from aioproducer.producer.parking.held_delivery import HeldDelivery
from aioproducer.types import ProducerRecord

PARKED_COST: Final = 640
"""Bytes of memory a waiting record takes besides its own (measured by ``python -m benchmarks memory``)."""


@final
class ParkedRecord:
    """A record on its way into the accumulator, and the result that its delivery points to."""

    __slots__ = (
        "awaiters",
        "charged",
        "choose",
        "condition",
        "deadline",
        "headers",
        "intercepted",
        "key",
        "moved_at",
        "number",
        "parked_at",
        "partition",
        "result",
        "serialization",
        "serialized_at",
        "size",
        "timestamp_ms",
        "topic",
        "undecided_since",
        "value",
    )

    def __init__(
        self,
        audience: Audience,
        record: ProducerRecord[bytes | None, bytes | None],
        size: int,
        *,
        now: float,
        max_block: float,
        condition: Any = None,
        intercepted: ProducerRecord | None = None,
        choose: Callable[[], int | None] | None = None,
        serialization: Serialization | None = None,
    ) -> None:
        self.topic = record.topic
        self.value = record.value
        self.key = record.key
        self.partition = record.partition
        self.timestamp_ms = record.timestamp_ms
        self.headers = None if record.headers is None else tuple(record.headers)  # the caller's list may change
        self.size = size
        self.serialization = serialization
        """The pending serialization of key and value; None once they are bytes."""
        self.parked_at = now
        self.serialized_at = now
        """When key and value were ready and its wait for metadata or memory began."""
        self.moved_at = now
        """When metadata was known and its wait for memory began."""
        self.deadline = now + max_block
        self.condition = condition
        self.intercepted = intercepted
        """The record as interceptors left it, if there are any: they see its end."""
        self.choose = choose
        """Calls the user's partitioner, if there is one: None while the topic is unknown, or PartitionerException."""
        self.number = 0
        self.awaiters = 0
        """How many tasks and ``wait_all`` calls await its delivery."""
        self.charged = False
        """It counts in ``parked.memory``."""
        self.undecided_since = 0
        """The turn of the loop in which it arrived, if there was no room for it."""
        self.result = ProduceResult(audience, *self.destination())

    @property
    def held(self) -> int:
        """Bytes of memory it takes while it waits."""
        return self.size + PARKED_COST

    def delivery(self) -> Delivery:
        """The delivery that ``send`` returns."""
        if self.charged or not self.waiting():
            return Delivery(self.result, 0)
        return HeldDelivery(self.result, 0)

    def waiting(self) -> bool:
        return self.result.state == PENDING  # neither placed nor failed

    def fail(self, error: DeliveryError, aborted: bool = False) -> None:
        """Ends the record; interceptors see it first."""
        if self.serialization is not None:
            self.serialization.drop()
        hooks = None if self.intercepted is None else self.result.hooks()
        if self.intercepted is not None and hooks is not None:
            hooks.on_send_error(self.intercepted, error)
        self.result.fail(error, aborted)

    def undecided(self) -> bool:
        """The user's partitioner has not chosen a partition yet."""
        return self.choose is not None and self.partition is None

    def destination(self) -> tuple[str, int]:
        """Its topic and partition; -1 for a partition that is not chosen yet."""
        return self.topic, -1 if self.partition is None else self.partition
