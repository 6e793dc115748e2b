"""A record that could not be appended at once, while it waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from aioproducer.errors import DeliveryError
from aioproducer.producer.accumulator.delivery import Delivery
from aioproducer.producer.accumulator.produce_result import PENDING, Loop, ProduceResult
from aioproducer.producer.hooks.hooks import Hooks
from aioproducer.producer.hooks.pending_serialization import Serialization
from aioproducer.producer.parking.held_delivery import HeldDelivery
from aioproducer.types import Headers, ProducerRecord

PARKED_COST: Final = 640
"""Bytes of memory that a record takes beside its own while it waits (``python -m benchmarks memory`` measures)."""


@final
class ParkedRecord:
    """A record on its way into the accumulator, and the result that its sender's delivery points to."""

    __slots__ = (
        "_hooks",
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
        loop: Loop,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
        size: int,
        *,
        now: float,
        max_block: float,
        condition: Any = None,
        hooks: Hooks | None = None,
        intercepted: ProducerRecord | None = None,
        choose: Callable[[], int | None] | None = None,
        serialization: Serialization | None = None,
    ) -> None:
        self.topic = topic
        self.key = key
        self.value = value
        self.partition = partition
        self.timestamp_ms = timestamp_ms
        self.headers = None if headers is None else tuple(headers)  # what was checked, whatever becomes of a list
        self.size = size
        self.serialization = serialization
        """What key and value are to be made of; None when they are bytes."""
        self.parked_at = now
        self.serialized_at = now
        """When it had its key and value, and waited for metadata or memory from then on."""
        self.moved_at = now
        """When it had its metadata, and waited for memory from then on."""
        self.deadline = now + max_block
        self.condition = condition
        self._hooks = hooks
        self.intercepted = intercepted
        """The record as interceptors left it, if there are any: they are told its end."""
        self.choose = choose
        """Asks the user's partitioner, if it is to decide: None while the topic is unknown, or PartitionerException."""
        self.number = 0
        self.awaiters = 0
        """How many await its delivery: tasks, and calls of ``wait_all``."""
        self.charged = False
        """It counts in ``parked.memory``."""
        self.undecided_since = 0
        """The turn of the loop in which it came, if there was no room for it."""
        self.result = ProduceResult(loop, *self.destination(), hooks)

    @property
    def held(self) -> int:
        """Bytes of memory it takes while it waits."""
        return self.size + PARKED_COST

    def delivery(self) -> Delivery:
        """What its sender gets."""
        if self.charged or not self.waiting():
            return Delivery(self.result, 0)
        return HeldDelivery(self.result, 0)

    def waiting(self) -> bool:
        return self.result.state == PENDING  # neither placed nor failed

    def fail(self, error: DeliveryError, aborted: bool = False) -> None:
        """Its end; interceptors hear of it first."""
        if self.serialization is not None:
            self.serialization.drop()
        if self.intercepted is not None and self._hooks is not None:
            self._hooks.on_send_error(self.intercepted, error)
        self.result.fail(error, aborted)

    def undecided(self) -> bool:
        """The user's partitioner has not chosen a partition yet."""
        return self.choose is not None and self.partition is None

    def destination(self) -> tuple[str, int]:
        """The topic and partition it is meant for; -1 for a partition that is not picked yet."""
        return self.topic, -1 if self.partition is None else self.partition
