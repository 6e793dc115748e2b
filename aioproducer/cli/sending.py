"""Sends records, and counts what became of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from aioproducer import Delivery, DeliveryError, KafkaError, KafkaProducer, Outcome
from aioproducer.errors import IllegalStateException
from aioproducer.types import Headers

T = TypeVar("T")

SETTLE_FROM = 20_000
"""With this many records under way, those that are done are counted."""


class Latencies:
    """Seconds from when a record enters the accumulator to its acknowledgement, for a sample of the records.

    A callback for every record would cost more than sending it. So every n-th record has one, and n doubles when there
    are too many samples.
    """

    LIMIT = 16_384
    FIRST_STRIDE = 61  # prime, so that it does not always hit the same record of a batch

    def __init__(self) -> None:
        self._samples: list[float] = []
        self._stride = self.FIRST_STRIDE
        self._count = 0

    def watch(self, delivery: Delivery) -> None:
        """Measures this delivery, which has just begun, if it is part of the sample."""
        self._count += 1
        if self._count % self._stride == 1:
            delivery.add_done_callback(partial(self._done, time.perf_counter()))

    def _done(self, began: float, delivery: Delivery) -> None:
        if delivery.outcome is not None:
            return
        self._samples.append(time.perf_counter() - began)
        if len(self._samples) > self.LIMIT:
            self._samples = self._samples[::2]
            self._stride *= 2

    def quantile(self, share: float) -> float | None:
        """The latency that this share of the sample did not exceed; None without a sample."""
        if not self._samples:
            return None
        ordered = sorted(self._samples)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


@dataclass
class Failures:
    """Records that failed for the same cause with the same outcome."""

    cause: str
    outcome: Outcome
    example: str
    count: int = 0


@dataclass
class Tally:
    """What became of all records so far. Bytes are those of keys and values."""

    delivered: int = 0
    delivered_bytes: int = 0
    failures: dict[tuple[str, Outcome], Failures] = field(default_factory=dict)
    latencies: Latencies = field(default_factory=Latencies)

    @property
    def failed(self) -> int:
        return sum(failures.count for failures in self.failures.values())

    def add_failure(self, cause: str, outcome: Outcome, example: str) -> None:
        failures = self.failures.setdefault((cause, outcome), Failures(cause, outcome, example))
        failures.count += 1


class Sending(Generic[T]):
    """Sends records with back-pressure and keeps each one's origin until it is delivered.

    ``on_failed(origin, error, outcome)`` is called for each record that is not. The number of origins kept is bounded
    by what the producer has under way, and so by buffer.memory.
    """

    def __init__(
        self,
        producer: KafkaProducer,
        topic: str,
        *,
        partition: int | None = None,
        headers: Headers | None = None,
        on_failed: Callable[[T, KafkaError, Outcome], None],
    ) -> None:
        self.tally = Tally()
        self.broken: KafkaError | None = None
        """Why the producer takes no more records."""
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._headers = headers
        self._on_failed = on_failed
        self._under_way: list[tuple[T, Delivery, int]] = []
        self._settle_at = SETTLE_FROM

    async def send(self, origin: T, value: bytes, key: bytes | None) -> Delivery | None:
        """Waits until the record is in the accumulator. If it cannot be sent, reports that and returns None."""
        try:
            delivery = await self._producer.enqueue(
                self._topic, value, key=key, partition=self._partition, headers=self._headers
            )
        except KafkaError as error:
            if isinstance(error, IllegalStateException):
                self.broken = error
            outcome = error.outcome if isinstance(error, DeliveryError) else Outcome.NOT_SENT
            self._on_failed(origin, error, outcome)
            return None
        self.tally.latencies.watch(delivery)
        self._under_way.append((origin, delivery, len(value) + (0 if key is None else len(key))))
        if len(self._under_way) >= self._settle_at:
            self.settle()
        return delivery

    def settle(self) -> None:
        """Counts the records that are done, and forgets them."""
        tally = self.tally
        under_way = []
        for item in self._under_way:
            origin, delivery, size = item
            if not delivery.done():
                under_way.append(item)
            elif delivery.outcome is None:
                tally.delivered += 1
                tally.delivered_bytes += size
            else:
                error = delivery.exception()
                assert error is not None
                self._on_failed(origin, error, error.outcome)
        self._under_way = under_way
        self._settle_at = max(SETTLE_FROM, 2 * len(under_way))
