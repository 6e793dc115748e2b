"""Every record that was handed to a producer, and the outcome that the producer reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aioproducer.errors import DeliveryError, KafkaError
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.record_metadata import RecordMetadata
from aioproducer.testing.simulation.checks.transactions import Transaction
from aioproducer.testing.simulation.trace import Trace
from aioproducer.types import Headers, ProducerRecord

NUMBER = "number"
"""The header with the record's number."""


class Entry:
    """One record. Times are the loop's."""

    __slots__ = (
        "accepted_at",
        "as_it_is",
        "awaited",
        "bulk",
        "cancelled",
        "delivered",
        "delivery",
        "ended_at",
        "ends",
        "error",
        "left",
        "number",
        "parked",
        "producer",
        "record",
        "sent_at",
        "time_limit",
        "transaction",
        "watched",
    )

    def __init__(
        self, number: int, producer: int, record: ProducerRecord, sent_at: float, transaction: Transaction | None = None
    ) -> None:
        self.number = number
        self.producer = producer
        self.record = record
        self.sent_at = sent_at
        self.transaction = transaction
        self.accepted_at: float | None = None
        """When it is known to have been in the accumulator."""
        self.time_limit: float | None = None
        """Its producer's delivery.timeout.ms, in seconds, if that is not the scenario's."""
        self.parked = False
        self.delivery: Delivery | None = None
        self.error: KafkaError | None = None
        """What ``enqueue`` raised."""
        self.cancelled = False
        """Whether ``enqueue`` was cancelled: the outcome of the record is unknown."""
        self.awaited = False
        self.left = False
        """Whether the task that awaited the record was cancelled."""
        self.bulk: object = None
        """The bulk send it belongs to, if any; its records are in order among themselves."""
        self.delivered = False
        """Whether a bulk send reported the record as delivered; it returns no metadata of single records."""
        self.as_it_is = True
        """Whether the value is sent without a serializer."""
        self.watched = False
        self.ends = 0
        self.ended_at: float | None = None

    @property
    def value(self) -> bytes | None:
        """The value as it should be in the log."""
        value: bytes | None = self.record.value
        return value if self.as_it_is or value is None else value[::-1]

    def settled(self) -> bool:
        return self.delivery is None or self.delivery.done()

    def metadata(self) -> RecordMetadata | None:
        """The metadata of a record that was acknowledged."""
        if self.delivery is None or not self.delivery.done() or self.delivery.exception() is not None:
            return None
        return self.delivery.result()

    def acknowledged(self) -> bool:
        return self.delivered or self.metadata() is not None

    def failure(self) -> KafkaError | None:
        if self.delivery is None:
            return self.error
        return self.delivery.exception() if self.delivery.done() else None

    def outcome(self) -> str:
        """The outcome in a few words, for the trace."""
        metadata = self.metadata()
        if metadata is not None:
            return f"{metadata.topic}-{metadata.partition}@{metadata.offset}"
        if self.delivered:
            return "delivered"
        failure = self.failure()
        if failure is None:
            return "cancelled" if self.cancelled else "pending"
        known = failure.outcome.value if isinstance(failure, DeliveryError) else "not accepted"
        return f"{type(failure).__name__} {known}"

    def __repr__(self) -> str:
        record = self.record
        where = record.topic if record.partition is None else f"{record.topic}-{record.partition}"
        return f"record {self.number} for {where} ({self.outcome()})"


class Ledger:
    """Entries in the order in which the records were handed over."""

    def __init__(self, clock: Callable[[], float], trace: Trace) -> None:
        self.entries: list[Entry] = []
        self.transactions: dict[int, Transaction] = {}
        """The open or last transaction of each producer."""
        self.on_end: Callable[[Entry], object] = lambda entry: None
        self._clock = clock
        self._trace = trace

    def open(self, producer: int, topic: str, fields: dict[str, Any]) -> Entry:
        """A new entry; its record carries its number."""
        number = len(self.entries)
        headers = ((NUMBER, b"%d" % number), *fields.pop("headers", ()))
        record = ProducerRecord(topic, **fields, headers=headers)
        entry = Entry(number, producer, record, self._clock(), self.transactions.get(producer))
        self.entries.append(entry)
        return entry

    def let_go(self) -> None:
        """Drops the deliveries, which refer back to the ledger: the garbage collector does not visit compiled ones."""
        for entry in self.entries:
            entry.delivery = None
            if entry.error is not None:
                entry.error.__traceback__ = None  # one of its frames may hold the delivery

    def accepted(self, entry: Entry, delivery: Delivery, *, parked: bool, watched: bool) -> None:
        entry.delivery = delivery
        entry.parked = parked
        if not parked:
            entry.accepted_at = self._clock()
        entry.watched = watched
        if watched:
            delivery.add_done_callback(lambda ended: self._ended(entry))

    def _ended(self, entry: Entry) -> None:
        entry.ends += 1
        entry.ended_at = self._clock()
        self._trace("end", entry.number, entry.outcome())
        self.on_end(entry)

    def deliveries(self, producer: int) -> list[Delivery]:
        """The deliveries of the records that one producer took."""
        return [entry.delivery for entry in self.entries if entry.producer == producer and entry.delivery is not None]

    def pending(self, producer: int) -> list[Entry]:
        """The entries of one producer that were accepted and have not ended."""
        return [entry for entry in self.entries if entry.producer == producer and not entry.settled()]


def number_of(headers: Headers | None) -> int:
    """The number of the record that has these headers."""
    return int(dict(headers or ())[NUMBER] or b"")
