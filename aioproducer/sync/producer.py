"""The producer as threads see it."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack, overload
from uuid import UUID

from aioproducer.config_types import ProducerConfigs
from aioproducer.configs.config_def import INT_MAX, LONG_MAX
from aioproducer.configs.producer_config import ProducerConfig, with_serializers
from aioproducer.configs.properties import given_configs
from aioproducer.errors import IllegalArgumentException, IllegalStateException
from aioproducer.metrics import MetricsSnapshot
from aioproducer.prepared_txn_state import PreparedTxnState
from aioproducer.producer.accumulator.record_accumulator import as_bytes, headers_size
from aioproducer.producer.admission.admission import record_of
from aioproducer.producer.bulk.result import BulkResult
from aioproducer.producer.delivery.delivery import Delivery as LoopDelivery
from aioproducer.producer.diagnosis.explanation import Explanation
from aioproducer.producer.diagnosis.health import HealthFinding, HealthThresholds
from aioproducer.producer.hooks.pending_serialization import Later
from aioproducer.producer.producer import KafkaProducer as LoopProducer
from aioproducer.producer.producer import core_of, hooks_of
from aioproducer.producer.units.unit import Unit as LoopUnit
from aioproducer.serializers import SerializerLike
from aioproducer.sync import lifetime
from aioproducer.sync.delivery import Delivery
from aioproducer.sync.handover import LARGE, Handover, Record
from aioproducer.sync.loop_thread import CLOSED, LoopThread
from aioproducer.sync.unit import Unit
from aioproducer.types import (
    ConsumerGroupMetadata,
    Headers,
    K,
    OffsetAndMetadata,
    PartitionInfo,
    ProducerRecord,
    TopicPartition,
    V,
)

T = TypeVar("T")


class KafkaProducer(Generic[K, V]):
    """Sends records to Kafka from any thread, through an event loop in its own thread.

    ::

        with KafkaProducer(bootstrap_servers="localhost:9092") as producer:
            metadata = producer.send("orders", b"value", key=b"42").result()

    Configs, errors, promises and calls are those of :class:`aioproducer.KafkaProducer`; calls return or raise when they
    are done. Any number of threads may make them. The thread starts with the first call, or with ``start()``; until
    then a producer survives a fork. A started one cannot be used in a forked process, where its calls raise
    IllegalStateException: make a new one there.

    Leaving ``with``, also by an exception, calls ``close()``, and so does the end of the interpreter: accepted records
    are delivered.
    """

    def __init__(
        self,
        *,
        key_serializer: SerializerLike[K] | None = None,
        value_serializer: SerializerLike[V] | None = None,
        **config: Unpack[ProducerConfigs],
    ) -> None:
        self._producer = self._make_producer(with_serializers(config, key_serializer, value_serializer))
        hooks = hooks_of(self._producer)
        self._hooks = hooks
        self._serializes = hooks.serializes
        # The loop calls interceptors and partitioners and awaits serializers, so each record waits for the loop.
        self._hands_over = not (hooks.intercepts() or hooks.partitions() or hooks.asynchronous)
        self._known: set[str] = set()
        """Topics whose metadata has been seen."""
        self._handover: Handover | None = None
        """Passes records to the loop, while they are accepted."""
        self._thread: LoopThread | None = None
        self._changing = threading.RLock()  # a signal handler may enter this again
        self._closed = False
        self._forked = False
        lifetime.watch(self)

    @classmethod
    def from_config(cls, config: Mapping[str, object] | str) -> Self:
        """A producer from Kafka's dotted names, as a mapping or as the text of a ``.properties`` file."""
        return cls(**given_configs(config))

    @property
    def config(self) -> ProducerConfig:
        """The configs in force."""
        return self._producer.config

    def __repr__(self) -> str:
        return repr(self._producer)

    # Life

    def start(self) -> None:
        """Starts the thread; does not wait for a broker. Starting twice is harmless; the call is optional."""
        self._running()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self, timeout: float | None = None) -> None:
        """Delivers the accepted records, then stops the thread. Every delivery is done when this returns.

        ``timeout`` is in seconds; when it is over, the remaining records fail with an error that gives their outcome.
        ``None`` waits until everything has ended, at most delivery.timeout.ms; 0 stops at once, and so does Ctrl-C.
        Closing twice is harmless, also in several threads at once.
        """
        if timeout is not None and timeout < 0:
            raise IllegalArgumentException(f"the time-out of close is {timeout}; it must be 0 or more seconds, or None")
        self._check_process()
        if self._thread is not None:
            self._thread.check_elsewhere()
        with self._changing:
            self._closed = True
            self._handover = None  # a later send raises
        if self._thread is not None:
            self._thread.close(timeout)

    def _after_fork(self) -> bool:
        """Called first thing in a fork. Returns whether the thread is in the parent."""
        self._changing = threading.RLock()  # a thread that does not exist here may hold the old one
        if self._thread is not None:
            self._forked = True
            self._handover = None
            self._thread.handover.abandon()
        return self._forked

    # Records

    @overload
    def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery: ...

    @overload
    def send(self, topic: ProducerRecord[K | None, V | None]) -> Delivery: ...

    def send(
        self,
        topic: Any,
        value: Any = None,
        *,
        key: Any = None,
        partition: Any = None,
        timestamp_ms: Any = None,
        headers: Any = None,
    ) -> Delivery:
        """Hands a record over and returns its delivery; asking for its ``result()`` is optional.

        It waits for the metadata of a new topic, and for room while records arrive faster than they can be delivered,
        each at most max.block.ms. When it returns, the record has been serialized. Serializers are called in the
        sending thread, possibly by many threads at once; those that are coroutine functions run on the event loop, one
        at a time, and the call waits for them.

        Raises IllegalArgumentException, IllegalStateException and SerializationException for misuse. The call waits for
        the loop if the topic is new, if the record has more than 2 KiB, if your interceptor or partitioner must be
        called, or your serializer awaited; then it also raises TimeoutException, BufferExhaustedException and
        RecordTooLargeException. All other errors arrive in the delivery, or in the log if nobody asks it.
        """
        handover = self._handover
        if handover is None:
            handover = self._running().handover
        if type(topic) is not str:
            topic, value, key, partition, timestamp_ms, headers = record_of(
                topic, value, key, partition, timestamp_ms, headers
            )
        if not self._hands_over:
            return self._carry(handover, (topic, value, key, partition, timestamp_ms, headers), serialize=True)
        if self._serializes:
            try:
                value, key, headers = self._hooks.serialized(topic, value, key, headers)
            except Later as later:  # only the loop can await it: the serializer is called again there
                later.serialization.drop()
                return self._carry(handover, (topic, value, key, partition, timestamp_ms, headers), serialize=True)
        value, key = as_bytes(value, "value"), as_bytes(key, "key")
        size = (0 if key is None else len(key)) + (0 if value is None else len(value))
        if partition is not None:
            _check_number(partition, "partition", INT_MAX)
        if timestamp_ms is not None:
            _check_number(timestamp_ms, "timestamp_ms", LONG_MAX)
        if headers is not None:
            size += headers_size(headers)
            headers = tuple(headers)
        record = (topic, value, key, partition, timestamp_ms, headers)
        if size > LARGE:
            return self._carry(handover, record, serialize=False)
        if topic not in self._known:
            self._learn(handover, topic)
        delivery = Delivery(handover)
        queue = handover.queue
        queue.append((delivery, record))
        if not handover.rung:
            handover.ring()
        if handover.full or len(queue) >= handover.most:
            handover.wait_for_room()
        return delivery

    def _learn(self, handover: Handover, topic: str) -> None:
        """Waits for metadata of a topic that is new here."""
        if not topic:
            raise IllegalArgumentException("the topic is empty")
        if not handover.on_loop():  # a callback that sends must not wait; its record does
            self.partitions_for(topic)
            self._known.add(topic)

    def _carry(self, handover: Handover, record: Record, *, serialize: bool) -> Delivery:
        """The slow path of a record: waits until the loop has put it into the accumulator."""
        delivery = Delivery(handover)
        if handover.on_loop():
            handover.take()
            delivery.placed(core_of(self._producer).entry.send(ProducerRecord(*record), serialize=serialize))
        else:
            delivery.placed(self._call(self._enqueue, ProducerRecord(*record), serialize=serialize))
        return delivery

    def _enqueue(self, record: ProducerRecord, *, serialize: bool) -> Awaitable[LoopDelivery]:
        return core_of(self._producer).entry.enqueue(record, serialize=serialize)

    def send_many(
        self,
        topic: str,
        values: Iterable[V | None],
        *,
        keys: Iterable[K | None] | None = None,
        partitions: Iterable[int | None] | None = None,
        timestamps_ms: Iterable[int | None] | None = None,
        headers: Iterable[Headers | None] | None = None,
    ) -> BulkResult:
        """Sends a record for each value, and returns when all of them have ended.

        The calling thread first reads other iterables than sequences to their end. Everything else is as with
        :meth:`aioproducer.KafkaProducer.send_many`.
        """
        columns = {"keys": keys, "partitions": partitions, "timestamps_ms": timestamps_ms, "headers": headers}
        more: dict[str, Any] = {name: _at_hand(column) for name, column in columns.items()}
        return self._call(self._producer.send_many, topic, _at_hand(values), **more)

    def send_table(
        self,
        topic: str,
        table: Any,
        *,
        value: str,
        key: str | None = None,
        partition: str | None = None,
        timestamp: str | None = None,
        headers: str | None = None,
    ) -> BulkResult:
        """``send_many`` for the rows of a table: see :meth:`aioproducer.KafkaProducer.send_table`."""
        return self._call(
            self._producer.send_table,
            topic,
            table,
            value=value,
            key=key,
            partition=partition,
            timestamp=timestamp,
            headers=headers,
        )

    def flush(self, timeout: float | None = None) -> None:
        """Returns when everything accepted before the call has been delivered or has failed; ignores linger.ms.

        After ``timeout`` seconds it raises the builtin TimeoutError, and the records stay under way.
        """
        self._call(self._producer.flush, wait=timeout)

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The topic's partitions, leaders and replicas; TimeoutException if unknown after max.block.ms."""
        return self._call(self._producer.partitions_for, topic)

    def client_instance_id(self, timeout: float) -> UUID:
        """The id that the cluster has given this producer for the metrics that it pushes (KIP-714); TimeoutException if
        it is unknown after ``timeout`` seconds, IllegalStateException if enable.metrics.push is false."""
        return self._call(self._producer.client_instance_id, timeout)

    def explain(self, topic: str, partition: int) -> Explanation:
        """Why the partition's oldest batch that is not under way has not been sent, in words and as values."""

        async def explain() -> Explanation:
            return self._producer.explain(topic, partition)

        return self._call(explain)

    def metrics(self) -> MetricsSnapshot:
        """Kafka's producer metrics at this moment; see ``docs/metrics.md``."""
        return self._producer.metrics()

    def health(self, thresholds: HealthThresholds | None = None) -> list[HealthFinding]:
        """What the metrics show to be wrong, worst first, and what to do about it; an empty list if all is well."""
        return self._producer.health(thresholds)

    # Transactions

    def init_transactions(self, *, keep_prepared_txn: bool = False) -> PreparedTxnState:
        """Takes over the transactional.id: a producer that had it before is fenced, and its transaction aborted, or
        kept with ``keep_prepared_txn``: then its state is returned (KIP-939)."""
        return self._call(self._producer.init_transactions, keep_prepared_txn=keep_prepared_txn)

    def begin_transaction(self) -> None:
        """Begins a transaction: it includes the records of all threads from now on."""
        self._call(self._producer.begin_transaction)

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group: ConsumerGroupMetadata | str,
    ) -> None:
        """Makes a group's offsets (of the next records to read) part of the transaction."""
        self._call(self._producer.send_offsets_to_transaction, offsets, group)

    def prepare_transaction(self) -> PreparedTxnState:
        """Delivers every record of the transaction, which then stays as it is until it is ended (KIP-939)."""
        return self._call(self._producer.prepare_transaction)

    def complete_transaction(self, state: PreparedTxnState) -> bool:
        """Commits the prepared transaction if ``state`` is its state, and aborts it otherwise; returns whether it was
        committed."""
        return self._call(self._producer.complete_transaction, state)

    def commit_transaction(self) -> None:
        """Delivers every record of the transaction, and commits it."""
        self._call(self._producer.commit_transaction)

    def abort_transaction(self) -> None:
        """Aborts it: committed readers see none of it; unsent records end (TransactionAbortedException)."""
        self._call(self._producer.abort_transaction)

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """A transaction: committed at the end of the block, aborted if the block raises, also by Ctrl-C.

        ::

            with producer.transaction():
                producer.send("orders", b"value")
        """
        transaction = self._producer.transaction()
        self._call(transaction.__aenter__)
        try:
            yield self
        except BaseException as error:
            if not self._call(transaction.__aexit__, type(error), error, error.__traceback__):
                raise
        else:
            self._call(transaction.__aexit__, None, None, None)

    def unit(self) -> Unit[K, V]:
        """A unit of work, committed as a whole in a transaction that many units share: any number of threads may be in
        such blocks at once.

        ::

            with producer.unit() as unit:
                unit.send("orders", b"value")
        """

        async def unit() -> LoopUnit[K, V]:
            return self._producer.unit()

        return Unit(self, self._call(unit))

    # Within

    def _make_producer(self, config: Mapping[str, Any]) -> LoopProducer[Any, Any]:
        """The producer that runs in the thread; a mock has another."""
        return LoopProducer(**config)

    def _call(
        self, function: Callable[..., Awaitable[T]], *arguments: Any, wait: float | None = None, **more: Any
    ) -> T:
        return self._running().call(function, *arguments, wait=wait, **more)

    def _running(self) -> LoopThread:
        """The thread; starts it if necessary."""
        self._check_open()
        with self._changing:
            if self._thread is None:
                self._check_open()
                self._thread = LoopThread(self._producer, self)
                self._handover = self._thread.handover
            return self._thread

    def _check_open(self) -> None:
        self._check_process()
        if self._closed:
            raise IllegalStateException(CLOSED)

    def _check_process(self) -> None:
        if self._forked:
            raise IllegalStateException(
                f"the producer was used before this process (pid {os.getpid()}) was forked: make one after the fork"
            )


def _check_number(number: object, what: str, most: int) -> None:
    if not (isinstance(number, int) and 0 <= number <= most):
        raise IllegalArgumentException(f"{what} is {number!r}; it must be an int from 0 on, or None")


def _at_hand(column: Any) -> Any:
    """A column of a bulk send as a sequence, so that reading it never blocks the loop."""
    if isinstance(column, Iterable) and not isinstance(column, Sequence):
        return list(column)
    return column
