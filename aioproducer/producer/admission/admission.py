"""Admission of records that cannot simply be appended: hooks run first, or the record waits or is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import (
    ApiException,
    DeliveryError,
    IllegalArgumentException,
    IllegalStateException,
    KafkaError,
    Outcome,
    PartitionerException,
    ProducerFencedException,
    RecordTooLargeException,
    SerializationException,
)
from aioproducer.metrics import ProducerMetrics
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator, as_bytes
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import ProduceResult
from aioproducer.producer.diagnosis.failure_log import FailedRun, FailureLog
from aioproducer.producer.hooks.hooks import Hooks
from aioproducer.producer.hooks.pending_serialization import Later, Serialization
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.sender.sender_calls import SenderCalls
from aioproducer.producer.transactions.transaction_calls import TransactionCalls
from aioproducer.protocol.text_check import check_topic
from aioproducer.types import Headers, ProducerRecord

NO_PARTITION_YET: Final = 2**31 - 1
"""No topic has this many partitions."""


def record_of(
    topic: str | ProducerRecord,
    value: Any,
    key: Any,
    partition: int | None,
    timestamp_ms: int | None,
    headers: Headers | None,
) -> ProducerRecord:
    """The record, from either form of ``send``'s arguments; IllegalArgumentException if it is none."""
    if isinstance(topic, str):  # or a subclass of str
        return ProducerRecord(str(topic), value, key, partition, timestamp_ms, headers)
    if not isinstance(topic, ProducerRecord):
        raise IllegalArgumentException(
            f"the topic is of type {type(topic).__name__}; it must be a str or a ProducerRecord"
        )
    if any(given is not None for given in (value, key, partition, timestamp_ms, headers)):
        raise IllegalArgumentException("a ProducerRecord brings its own value, key, partition, timestamp and headers")
    if not isinstance(topic.topic, str):
        raise IllegalArgumentException(f"the record's topic is of type {type(topic.topic).__name__}; it must be a str")
    return topic


class Admission:
    """One per producer. ``check_place`` raises unless the caller is in the producer's loop and process; ``condition``
    below makes the Condition on which an ``enqueue`` caller waits, and is None for ``send``."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: RecordAccumulator,
        lot: ParkingLot,
        sender: SenderCalls,
        transactions: TransactionCalls | None,
        hooks: Hooks,
        metrics: ProducerMetrics,
        failures: FailureLog,
        *,
        check_place: Callable[[], object],
    ) -> None:
        self._loop = accumulator.loop
        self._max_block = config.max_block_ms / 1000
        self._accumulator = accumulator
        self._lot = lot
        self._sender = sender
        self._transactions = transactions
        self._hooks = hooks
        self._metrics = metrics
        self._failures = failures
        self.check_place = check_place
        self._closed = False

    def close(self) -> None:
        """Refuses all records from now on."""
        self._closed = True
        self._lot.shut()

    def check_open(self) -> None:
        """Raises if no record is accepted now: IllegalStateException unless a newer producer has taken over."""
        self.check_usable()
        if (transactions := self._transactions) is not None and (why := transactions.why_no_records()):
            raise IllegalStateException(why)

    def check_usable(self) -> None:
        """The same, whether or not there is a transaction for the record."""
        if (fatal := self._sender.fatal) is not None:
            if isinstance(fatal, ProducerFencedException):
                raise fatal.fresh()
            raise IllegalStateException(f"the producer has failed: {fatal}") from fatal
        if self._closed:
            raise IllegalStateException("the producer is closed; make a new one")

    def let_in(
        self, given: ProducerRecord, condition: Callable[[], Any] | None = None, *, serialize: bool = True
    ) -> Delivery | ParkedRecord:
        """All of ``send``, or ``enqueue`` up to its wait, including calls of the user's code.

        ``serialize`` is False for key and value that are bytes already, whatever the serializers expect.
        """
        hooks = self._hooks
        if hooks.closed:
            self.check_open()
        record: ProducerRecord | None = None
        if hooks.intercepts():
            given = record = hooks.on_send(given)
        topic, value, key, partition, timestamp_ms, headers = given
        try:
            self.check_open()
            value_bytes, key_bytes = value, key
            if serialize and hooks.serializes:
                try:
                    value_bytes, key_bytes, headers = hooks.serialize(topic, value, key, headers)
                except Later as later:
                    return self._serialize_later(later.serialization, given, condition, record)
            choose = None
            if partition is None and hooks.partitions():
                value_bytes, key_bytes = as_bytes(value_bytes, "value"), as_bytes(key_bytes, "key")
                choose = partial(self._choose, topic, key, key_bytes, value, value_bytes)
                partition = choose()
            # A partition not chosen yet counts as none: the record is checked, and must wait.
            number = NO_PARTITION_YET if choose is not None and partition is None else partition
            delivery = self._accumulator.append(topic, value_bytes, key_bytes, number, timestamp_ms, headers)
            if delivery is None:
                waiting = ProducerRecord(topic, value_bytes, key_bytes, partition, timestamp_ms, headers)
                return self.park(waiting, condition, intercepted=record, choose=choose)
        except BaseException as error:
            if record is not None:
                hooks.on_send_error(record, error)
            if condition is None and isinstance(error, RecordTooLargeException | PartitionerException):
                return self.failed(topic, partition, error)
            self.refused(topic, error)
            raise
        if record is not None:
            delivery._result.intercept(delivery._index, () if headers is None else tuple(headers))
        return delivery

    def _serialize_later(
        self,
        serialization: Serialization,
        given: ProducerRecord,
        condition: Callable[[], Any] | None,
        intercepted: ProducerRecord | None,
    ) -> ParkedRecord:
        """Parks a record until its serializers finish; everything else about it is checked now."""
        record = given._replace(value=None, key=None, headers=serialization.headers)
        try:
            self._accumulator.check(record.topic, None, None, record.partition, record.timestamp_ms, record.headers)
            return self.park(record, condition, intercepted=intercepted, serialization=serialization)
        except BaseException:
            serialization.drop()
            raise

    def serialized(self, record: ParkedRecord) -> None:
        """Handles the first record that waited for serializers, now serialized: it is placed, waits on, or fails."""
        topic, made = record.topic, record.serialization
        try:
            if made is not None:
                record.key, record.value = as_bytes(made.key_bytes, "key"), as_bytes(made.value_bytes, "value")
                record.headers = tuple(made.headers) if made.headers else None
                if record.partition is None and self._hooks.partitions():
                    record.choose = partial(self._choose, topic, made.key, record.key, made.value, record.value)
                    record.partition = record.choose()
            number = NO_PARTITION_YET if record.undecided() else record.partition
            self._accumulator.check(topic, record.value, record.key, number, record.timestamp_ms, record.headers)
            size = self._accumulator.record_size(record.value, record.key, record.headers)
        except KafkaError as error:
            if record.waiting():
                self._lot.give_up(record, error)
            return
        if record.waiting():  # the user's partitioner may have closed it
            self._lot.serialized(record, size)
            self._sender.parked(topic)  # also if it was placed: its caller may wait for the notification

    def _choose(
        self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None
    ) -> int | None:
        """The user's partitioner's choice; None while the topic is unknown."""
        infos = self._sender.known_partitions(topic)
        return self._hooks.partition(topic, key, key_bytes, value, value_bytes, infos) if infos else None

    def park(
        self,
        record: ProducerRecord,
        condition: Callable[[], Any] | None = None,
        *,
        intercepted: ProducerRecord | None = None,
        choose: Callable[[], int | None] | None = None,
        serialization: Serialization | None = None,
    ) -> ParkedRecord:
        """Parks a checked record that lacks metadata, memory, or its bytes."""
        check_topic(record.topic)
        self.check_place()
        self.check_open()
        record = record._replace(value=as_bytes(record.value, "value"), key=as_bytes(record.key, "key"))
        size = self._accumulator.record_size(record.value, record.key, record.headers)
        if serialization is not None:
            size += serialization.size
        parked = ParkedRecord(
            self._accumulator.audience,
            record,
            size,
            now=self._loop.time(),
            max_block=self._max_block,
            condition=None if condition is None else condition(),
            intercepted=intercepted,
            choose=choose,
            serialization=serialization,
        )
        self._lot.park(parked)
        self._sender.parked(record.topic)
        return parked

    def failed(self, topic: str, partition: int | None, error: KafkaError) -> Delivery:
        """The delivery of a record that can never be sent."""
        self.check_open()
        self.missing(error)
        where = (topic, -1 if partition is None else partition)
        result = ProduceResult(self._accumulator.audience, *where)
        ended = DeliveryError.of(error, Outcome.NOT_SENT, where)
        result.fail(ended)
        self.refused(topic, error)
        # After two turns: a task made for the delivery now awaits it in the next.
        self._loop.call_soon(self._loop.call_soon, self._report_unseen, result, ended)
        return Delivery(result, 0)

    def refused(self, topic: str, error: BaseException) -> None:
        """Counts a record refused for its content; not misuse, nor errors of the user's code."""
        if isinstance(error, ApiException | SerializationException | PartitionerException):
            self._metrics.records_failed(topic, 1, self._loop.time())

    def never_tried(self, topic: str, count: int) -> None:
        """Counts unsent records of a bulk call whose producer was closed or failed on the way."""
        self._metrics.records_failed(topic, count, self._loop.time())

    def bulk_began(self) -> int:
        """A bulk call starts to send records; returns the number of their transaction, 0 without one."""
        transactions = self._transactions
        return 0 if transactions is None else transactions.status.bulk_began()

    def bulk_ended(self, transaction: int) -> None:
        """The bulk call has sent all records, or given up."""
        if (transactions := self._transactions) is not None:
            transactions.status.bulk_ended(transaction)

    def why_no_more(self, transaction: int) -> KafkaError | None:
        """Why a bulk call of this transaction must stop sending; None if it may continue."""
        transactions = self._transactions
        if transactions is None or transactions.status.transaction == transaction:
            return None
        return IllegalStateException("the transaction of the call ended before the call had sent all its records")

    def missing(self, error: KafkaError) -> None:
        """A record was refused without an exception: its transaction must not commit without it."""
        if (transactions := self._transactions) is not None:
            transactions.batch_failed(error)

    def unread(self, topic: str, error: Exception) -> None:
        """Logs the error of an ``enqueue`` record that was refused and never awaited."""
        if isinstance(error, KafkaError):
            self.missing(error)
            ended = DeliveryError.of(error, Outcome.NOT_SENT, (topic, -1))
            self._failures.failed(topic, -1, 1, ended, self._loop.time())

    def unread_runs(self, runs: Sequence[FailedRun]) -> None:
        """Logs failures that the caller of a bulk call does not read."""
        now = self._loop.time()
        for indices, error in runs:
            assert error.topic_partition is not None
            self._failures.failed(*error.topic_partition, len(indices), error, now)

    def _report_unseen(self, result: ProduceResult, error: DeliveryError) -> None:
        """Logs the failure of a record that no caller has asked about by now."""
        if not result.error_seen:
            self._failures.failed(result.topic, result.partition, 1, error, self._loop.time())
