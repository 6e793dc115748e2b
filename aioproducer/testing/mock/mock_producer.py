"""A producer without brokers, for tests of programs that use one (Kafka's ``MockProducer``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Unpack
from uuid import UUID

from aioproducer.config_types import ProducerOptions
from aioproducer.configs.producer_config import with_serializers
from aioproducer.errors import (
    ApiException,
    DeliveryError,
    IllegalArgumentException,
    IllegalStateException,
    KafkaError,
    Outcome,
    ProducerFencedException,
)
from aioproducer.metrics import MetricName, MetricsSnapshot
from aioproducer.metrics.metric_name import PRODUCER_GROUP
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.admission.admission import Admission
from aioproducer.producer.admission.record_entry import RecordEntry
from aioproducer.producer.admission.serializer_lane import SerializerLane
from aioproducer.producer.assembly import make_accumulator
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.core import ProducerCore
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import FORWARDED, WHOLE, ProduceResult
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.producer import KafkaProducer
from aioproducer.producer.transactions.record_control import RecordControl
from aioproducer.producer.transactions.state import TransactionState
from aioproducer.producer.units.units import Units
from aioproducer.serializers import SerializerLike
from aioproducer.tasks.own_task import start_task
from aioproducer.testing.mock.mock_errors import MockErrors
from aioproducer.testing.mock.mock_sender import MockSender
from aioproducer.testing.mock.mock_transactions import GroupOffsets, MockTransactions
from aioproducer.types import K, PartitionInfo, ProducerRecord, V

_ALL_MEMORY = 2**62
"""Bytes: no record waits for memory."""

_SINGLE = {"batch_size": 0, "batch_initial_size": 0, "batch_max_size": 0}
"""A batch for each record."""


class _Opened:
    """Batches of one record need only be known: they are neither waited for nor filled."""

    def __init__(self, opened: Callable[[PartitionQueue, ProducerBatch], object]) -> None:
        self._opened = opened

    def opened(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self._opened(queue, batch)

    def ready(self, queue: PartitionQueue) -> None:
        pass

    def full(self, queue: PartitionQueue) -> None:
        pass

    def awaited(self, queue: PartitionQueue) -> None:
        pass

    def joined(self, parts: list[ProducerBatch], whole: ProducerBatch) -> None:
        pass

    def turn_is_due(self) -> bool:
        return False

    def line_takes(self, queue: PartitionQueue) -> int:
        return 0

    def is_enough(self, queue: PartitionQueue) -> bool:
        return False


class MockConfigs(ProducerOptions, total=False):
    """The configs of a mock."""

    bootstrap_servers: str | Sequence[str]
    """Accepted, and not used."""


class MockProducer(KafkaProducer[K, V]):
    """A :class:`~aioproducer.KafkaProducer` that sends nothing: no broker, no connection, no task.

    ::

        async with MockProducer() as producer:
            await place_order(producer)
            assert [record.value for record in producer.history] == [b"an order"]

    Configs, serializers, partitioner, interceptors, checks and errors are the real ones. ``topics`` are names, or
    numbers of partitions by name; any other topic is created with one partition when it is first used. Records without
    key and partition go to random partitions, the same in every run.

    With ``auto_complete`` records are delivered in the next turn of the loop, because no real record is delivered
    before ``send`` returns. Without it, :meth:`complete_next` and :meth:`error_next` end records one by one. ``flush``,
    ``close`` and ``commit_transaction`` deliver the rest. ``errors`` holds the errors that calls raise:
    ``errors.flush = error``.
    """

    def __init__(
        self,
        *,
        auto_complete: bool = True,
        topics: Mapping[str, int] | Iterable[str] = (),
        key_serializer: SerializerLike[K] | None = None,
        value_serializer: SerializerLike[V] | None = None,
        **config: Unpack[MockConfigs],
    ) -> None:
        complete = with_serializers(config, key_serializer, value_serializer)
        given: dict[str, Any] = {name.replace(".", "_"): value for name, value in complete.items()}
        # A batch for each record, so that each can end separately.
        super().__init__(**{"bootstrap_servers": "mock:9092", **given, **_SINGLE, "buffer_memory": _ALL_MEMORY})
        self.errors = MockErrors()
        self._auto_complete = auto_complete
        self._topics = _checked(topics)
        self._history: list[ProducerRecord] = []
        self._mock_metrics: dict[MetricName, float] = {}
        self._client_instance_id: UUID | None = None
        self._random = Random(0)
        self._hooked = True  # every record passes through _Recording

    # How records ended

    @property
    def history(self) -> list[ProducerRecord]:
        """The records that were sent, as they were given to ``send``; those of a transaction once it is committed."""
        return list(self._history)

    def complete_next(self) -> bool:
        """Delivers the oldest record that has not ended; False if there is none."""
        return self._mock.complete_next()

    def error_next(self, error: KafkaError, *, outcome: Outcome = Outcome.NOT_SENT) -> bool:
        """Ends the oldest record with this error; False if there is none.

        Its transaction fails, as a real one does: committing it raises TransactionAbortableException.
        """
        given: object = error
        if not isinstance(given, KafkaError):
            raise IllegalArgumentException(f"a record ends with a KafkaError, not with a {type(given).__name__}")
        return self._mock.error_next(error, outcome)

    @property
    def flushed(self) -> bool:
        """Whether every record has been delivered or has failed."""
        return not self._mock.incomplete()

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closing is not None

    def clear(self) -> None:
        """Forgets history, offsets, and the records that have not ended; their deliveries never end.

        A transaction stays as it is.
        """
        self._history.clear()
        self._mock.forget()
        if self._mock.transactions is not None:
            self._mock.transactions.clear()

    def metrics(self) -> MetricsSnapshot:
        """The metrics of the real producer, and those set by ``set_mock_metrics``."""
        return self._with_those_set(super().metrics())

    def _overview(self) -> MetricsSnapshot:
        return self._with_those_set(super()._overview())

    def _with_those_set(self, found: MetricsSnapshot) -> MetricsSnapshot:
        return MetricsSnapshot({**found, **self._mock_metrics}, found.distributions) if self._mock_metrics else found

    def set_mock_metrics(self, name: MetricName | str, value: float) -> None:
        """Set a value that ``metrics()`` and ``health()`` report; a plain name means ``producer-metrics``."""
        if isinstance(name, str):
            name = MetricName(name, PRODUCER_GROUP, (("client-id", self._config.client_id),))
        self._mock_metrics[name] = value

    async def client_instance_id(self, timeout: float) -> UUID:
        """What ``set_client_instance_id`` has set; IllegalStateException if nothing, or if enable.metrics.push is
        false."""
        self.errors.strike("client_instance_id")
        if not self._config.enable_metrics_push:
            return await super().client_instance_id(timeout)
        if self._client_instance_id is None:
            raise IllegalStateException("the mock has no client instance id: call set_client_instance_id first")
        return self._client_instance_id

    def set_client_instance_id(self, client_instance_id: UUID) -> None:
        """Set what ``client_instance_id()`` returns."""
        self._client_instance_id = client_instance_id

    # Transactions

    @property
    def transaction_initialized(self) -> bool:
        """Whether ``init_transactions`` was called."""
        return self._mock_transactions.initialized()

    @property
    def transaction_in_flight(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._mock_transactions.in_flight()

    @property
    def transaction_committed(self) -> bool:
        """Whether the last transaction was committed, and none has begun since."""
        return self._mock_transactions.last_end is TransactionState.COMMITTING

    @property
    def transaction_aborted(self) -> bool:
        """Whether the last transaction was aborted, and none has begun since."""
        return self._mock_transactions.last_end is TransactionState.ABORTING

    @property
    def commit_count(self) -> int:
        """The number of committed transactions."""
        return self._mock_transactions.commits

    @property
    def uncommitted_records(self) -> list[ProducerRecord]:
        """The records of the open transaction."""
        return list(self._mock_transactions.records)

    @property
    def uncommitted_offsets(self) -> GroupOffsets:
        """The offsets of the open transaction, by group."""
        return {group: dict(offsets) for group, offsets in self._mock_transactions.offsets.items()}

    @property
    def consumer_group_offsets_history(self) -> list[GroupOffsets]:
        """The offsets of each committed transaction that had any, by group."""
        return list(self._mock_transactions.offsets_history)

    @property
    def sent_offsets(self) -> bool:
        """Whether any offsets were sent to the last transaction."""
        return self._mock_transactions.sent_offsets

    def fence_producer(self) -> None:
        """Act as if a newer producer had taken over: unfinished calls and records fail with ProducerFencedException."""
        _ = self._transactional("fence_producer()")
        if not self._mock_transactions.initialized():
            raise IllegalStateException("fence_producer() was called, but init_transactions() was not")
        if self._mock.fatal is not None:
            raise self._mock.fatal.fresh()
        self._mock.fail(ProducerFencedException("the mock was fenced: a newer producer has its transactional.id"))

    # Calls that can be made to fail

    def flush(self) -> Coroutine[Any, Any, None]:
        """Flushes as the real producer does: delivers every record that has not ended."""
        return self._unless_error_set("flush", super().flush())

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The topic's partitions; an unknown topic is created with one partition."""
        self.errors.strike("partitions_for")
        return await super().partitions_for(topic)

    def close(self, timeout: float | None = None) -> Coroutine[Any, Any, None]:
        """Closes as the real producer does; delivers every record that has not ended, with any time-out."""
        return self._unless_error_set("close", super().close(timeout))

    # Internals

    async def _unless_error_set(self, call: str, real: Coroutine[Any, Any, None]) -> None:
        try:
            self.errors.strike(call)
        except Exception:
            real.close()  # it has not begun
            raise
        await real

    @property
    def _mock(self) -> MockSender:
        if self._affinity.loop is None:
            raise IllegalStateException("the mock is not started: use async with, or await producer.start()")
        sender = self._core.sender
        assert isinstance(sender, MockSender)
        return sender

    @property
    def _mock_transactions(self) -> MockTransactions:
        transactions = self._mock.transactions
        if transactions is None:
            raise IllegalStateException("a mock without transactional_id= has no transactions")
        return transactions

    def _assemble(self) -> ProducerCore:
        inputs = self._inputs()
        config, metrics, hooks = inputs.config, inputs.metrics, inputs.hooks
        loop = asyncio.get_running_loop()

        def fail_transaction(error: KafkaError) -> None:
            if transactions is not None:
                transactions.batch_failed(error)

        failures = FailureLog(lambda: sender.failure_added())
        accumulator = make_accumulator(inputs, loop, _Opened(lambda queue, batch: sender.batch_opened(queue, batch)))
        lot = ParkingLot(
            accumulator,
            config.parked_memory,
            failures,
            metrics,
            on_failed=fail_transaction,
            wake=lambda: sender.look(),
            on_serializing=lambda: lane.look(),
            within_serializer=lambda: lane.within(),
        )
        transactions: MockTransactions | None = None
        if config.transactional_id is not None:
            control = RecordControl(
                gate=lambda is_open: lot.open() if is_open else lot.shut(),
                flush=lambda: sender.flush(),
                give_up=lambda error: sender.give_up(error),
                ready=lambda *queues: None,
                fatal=lambda error: sender.fail(error),
                passed=lambda: sender.flush(),
            )
            transactions = MockTransactions(
                config.transactional_id, config.transaction_two_phase_commit_enable, self.errors, self._history, control
            )
        sender = MockSender(
            accumulator,
            lot,
            metrics,
            failures,
            inputs.random,
            transactions,
            topics=self._topics,
            auto_complete=self._auto_complete,
        )
        admission = _Recording(
            self.errors,
            self._sent,
            config,
            accumulator,
            lot,
            sender,
            transactions,
            hooks,
            metrics,
            failures,
            check_place=inputs.check_place,
        )
        lane = SerializerLane(lot, hooks, admission.serialized)
        hooks.bind(loop, lot.serializing.occupied)
        entry = RecordEntry(loop, accumulator, lot, admission)
        units = None
        if transactions is not None:
            units = Units(
                config,
                accumulator,
                lot,
                sender,
                transactions,
                hooks,
                admission,
                metrics,
                inputs.random,
                spawn=start_task,
                taking=lambda: self.errors.strike("send"),
                placed=self._sent,
            )
        return ProducerCore(loop, accumulator, lot, failures, sender, transactions, admission, entry, lane, units)

    def _sent(self, record: ProducerRecord) -> None:
        transactions = self._mock.transactions
        (self._history if transactions is None else transactions.records).append(record)

    def _one_by_one(self, *, serialize: bool) -> bool:
        return True


def _checked(topics: Mapping[str, int] | Iterable[str]) -> dict[str, int]:
    if isinstance(topics, str):
        raise IllegalArgumentException(f"topics is {topics!r}; it must be the names of topics, or numbers by name")
    given: dict[str, Any] = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
    for name, partitions in given.items():
        if not (isinstance(partitions, int) and partitions > 0):
            raise IllegalArgumentException(f"topics[{name!r}] is {partitions!r}; a topic has 1 partition or more")
    return given


class _Recording(Admission):
    """An admission that calls ``sent`` with every record that it accepts."""

    def __init__(
        self, errors: MockErrors, sent: Callable[[ProducerRecord], object], *arguments: Any, **more: Any
    ) -> None:
        super().__init__(*arguments, **more)
        self._errors = errors
        self._sent = sent

    def let_in(
        self, given: ProducerRecord, condition: Callable[[], Any] | None = None, *, serialize: bool = True
    ) -> Delivery | ParkedRecord:
        self.check_open()
        try:
            self._errors.strike("send")
        except ApiException as error:  # a real producer, too, raises it as the end of a delivery
            where = (given.topic, -1 if given.partition is None else given.partition)
            raise DeliveryError.of(error, Outcome.NOT_SENT, where) from None
        placed = super().let_in(given, condition, serialize=serialize)
        if isinstance(placed, ParkedRecord):
            placed.result.add_waiter(WHOLE, _WhenPlaced(placed.result, partial(self._sent, given)))
        elif placed.outcome is None:
            self._sent(given)
        return placed


class _WhenPlaced:
    """Calls ``sent()`` when the record is in the accumulator; the result uses it as a future."""

    def __init__(self, result: ProduceResult, sent: Callable[[], object]) -> None:
        self._result = result
        self._sent = sent

    def done(self) -> bool:
        return False

    def set_result(self, _: None) -> None:
        if self._result.state == FORWARDED:
            self._sent()
