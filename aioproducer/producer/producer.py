"""The producer as its users see it: ``send``, ``enqueue``, ``flush``, ``close``."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from functools import partial
from random import Random
from types import TracebackType
from typing import Any, Final, Self, Unpack

from aioproducer.config_types import ProducerConfigs
from aioproducer.configs.config_def import read_properties
from aioproducer.configs.producer_config import ProducerConfig, producer_config, with_serializers
from aioproducer.errors import IllegalArgumentException, IllegalStateException, KafkaError
from aioproducer.metrics import MetricsSnapshot, ProducerMetrics
from aioproducer.metrics.producer_metrics import Gauges
from aioproducer.metrics.registry import RecordingLevel
from aioproducer.net.addresses import parse_addresses
from aioproducer.printable import printable
from aioproducer.producer.accumulator.buffer_pool import BufferPool
from aioproducer.producer.accumulator.compression_ratio import CompressionRatioEstimator
from aioproducer.producer.accumulator.delivery import Delivery
from aioproducer.producer.accumulator.produce_result import FORWARDED
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.admission.admission import Admission, fields_of
from aioproducer.producer.admission.enqueued import enqueued
from aioproducer.producer.admission.enqueuing import Enqueuing
from aioproducer.producer.admission.serializer_lane import SerializerLane
from aioproducer.producer.bulk.bulk_send import BulkSend
from aioproducer.producer.bulk_calls import BulkCalls
from aioproducer.producer.diagnosis.explanation import Explanation, counted
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.diagnosis.health import HealthFinding, HealthThresholds, findings
from aioproducer.producer.hooks.hooks import Hooks
from aioproducer.producer.loop_affinity import LoopAffinity, here
from aioproducer.producer.metric_reporters import Reporters
from aioproducer.producer.parking.enqueue_wait import placed
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.producer_type import ProducerType
from aioproducer.producer.record_calls import RecordCalls
from aioproducer.producer.sender.sender import Sender
from aioproducer.producer.transactional_calls import TransactionalCalls
from aioproducer.producer.transactions.transaction_manager import TransactionManager
from aioproducer.records.compression import CompressionType, check_codec
from aioproducer.serializers import SerializerLike
from aioproducer.tasks.cancelled_scopes import completed_in_cancelled_scopes
from aioproducer.tasks.own_task import start_task
from aioproducer.timing.clock import Clock, SystemClock
from aioproducer.type_variables import K, V
from aioproducer.types import PartitionInfo

_MOST_OF_AN_ERROR: Final = 300
"""The most characters of an error in the producer's ``repr``."""


class KafkaProducer(RecordCalls[K, V], BulkCalls[K, V], TransactionalCalls, metaclass=ProducerType):
    """Sends records to Kafka from one event loop.

    ::

        async with KafkaProducer(bootstrap_servers="localhost:9092") as producer:
            metadata = await producer.send("orders", b"value", key=b"42")

    Keys and values are bytes, or what ``key_serializer`` and ``value_serializer`` take: a ``KafkaProducer[str, Order]``
    takes such keys and values (``docs/types.md``).

    Configs are Kafka's, in snake_case (``linger_ms=5``); see ``docs/configuration.md``. The constructor checks them and
    raises ConfigException, but it makes no connection and needs no running loop. ``start()`` or ``async with`` binds
    the producer to the running loop. From then on it belongs to that loop and process: using it from another one raises
    IllegalStateException. Leaving ``async with``, also by an exception, calls ``close()``, which delivers the accepted
    records.
    """

    def __init__(
        self,
        *,
        key_serializer: SerializerLike[K] | None = None,
        value_serializer: SerializerLike[V] | None = None,
        **config: Unpack[ProducerConfigs],
    ) -> None:
        self._config = producer_config(with_serializers(config, key_serializer, value_serializer))
        parse_addresses(self._config.bootstrap_servers)
        check_codec(CompressionType.of(self._config.compression_type), self._config.compression_level)
        self._closing: asyncio.Task[None] | None = None
        # The inputs of a run besides its loop; a simulation replaces them.
        self._clock: Clock = SystemClock()
        self._random = Random()
        self._hooks = Hooks(self._config)
        super().__init__(here, hooked=self._hooks.any)
        self._affinity = LoopAffinity(self._moved)
        self._metrics = ProducerMetrics(
            self._config.client_id,
            buffer_memory=self._config.buffer_memory,
            window=self._config.metrics_sample_window_ms / 1000,
            samples=self._config.metrics_num_samples,
            level=RecordingLevel[self._config.metrics_recording_level],
            start_time_ms=self._clock.time_ms(),
        )
        self._reporters = Reporters(self._config.metric_reporters)
        self._failures = FailureLog()
        self._lot: ParkingLot
        self._sender: Sender
        self._admission: Admission
        self._lane: SerializerLane
        self._transactions: TransactionManager | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, object] | str) -> Self:
        """A producer from Kafka's dotted names, as a mapping or as the text of a ``.properties`` file."""
        given: Mapping[str, Any] = read_properties(config) if isinstance(config, str) else config
        return cls(**given)

    @property
    def config(self) -> ProducerConfig:
        """The configs in force."""
        return self._config

    # Life

    async def start(self) -> None:
        """Binds to the running loop and starts the Sender; does not wait for a broker. Starting twice is harmless."""
        if self._closing is not None:
            raise IllegalStateException("the producer is closed; make a new one")
        if self._affinity.loop is not None:
            self._affinity.check()
            return
        loop = asyncio.get_running_loop()
        config = self._config
        codec = CompressionType.of(config.compression_type)
        pool = BufferPool(config.buffer_memory, max(config.batch_size, 1))
        self._accumulator = RecordAccumulator(
            pool,
            loop,
            # The machine's own clock is read for each record without a Python call.
            None if isinstance(self._clock, SystemClock) else self._clock.time_ms,
            batch_size=max(config.batch_size, 1),
            max_request_size=config.max_request_size,
            ignore_keys=config.partitioner_ignore_keys,
            ratios=None if codec is CompressionType.NONE else CompressionRatioEstimator(),
            hooks=self._hooks,
        )
        self._lot = ParkingLot(self._accumulator, config.parked_memory, self._failures, self._metrics)
        self._sender = self._make_sender()
        self._metrics.gauges = Gauges(
            buffer_available=lambda: pool.available,
            waiting=lambda: len(self._lot.memory),
            parked_bytes=lambda: self._lot.bytes,
            parked_records=lambda: len(self._lot),
            requests_in_flight=self._sender.requests_in_flight,
            metadata_time=self._sender.metadata_time,
            unreachable_since=self._sender.unreachable_since,
            failed=lambda: int(self._sender.fatal is not None),
        )
        self._admission = self._make_admission(loop)
        self._lane = SerializerLane(self._lot, self._hooks, self._admission.serialized)
        if config.transactional_id is not None:
            self._transactions = self._sender.make_transactional()
        self._hooks.loop = loop
        self._affinity.enter()
        self._sender.start()
        self._reporters.init(self)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def close(self, timeout: float | None = None) -> Coroutine[Any, Any, None]:
        """Delivers the accepted records, then stops. Every delivery is done when this returns.

        ``timeout`` is in seconds. When it is over, the remaining records fail with an error whose outcome is
        ``not_sent``, or ``unknown`` if they were under way. ``None`` waits until everything has ended, at most
        delivery.timeout.ms; 0 stops at once. Closing twice is harmless: all callers wait for the same end, and the
        first caller that times out or is cancelled ends the wait for all. Called within an interceptor, serializer,
        partitioner or delivery callback (and awaited by a task), it stops at once, whatever the ``timeout``. In an
        anyio scope that was cancelled before, it still delivers, as it does in a cancelled asyncio task.
        """
        return self._close_within(0 if self._hooks.depth else timeout)

    async def _close_within(self, timeout: float | None) -> None:
        if timeout is not None and timeout < 0:
            raise IllegalArgumentException(f"the time-out of close is {timeout}; it must be 0 or more seconds, or None")
        if self._affinity.loop is None:
            return
        self._affinity.check()
        if self._closing is None:
            self._closing = start_task(self._close(), "aioproducer close")
        closing = self._closing
        try:
            with completed_in_cancelled_scopes():
                await asyncio.wait([closing], timeout=timeout)
        finally:
            # A caller may leave, by time-out or cancellation, but no record may stay unresolved.
            if not closing.done():
                closing.cancel()
                with completed_in_cancelled_scopes():
                    await asyncio.wait([closing])
        if not closing.cancelled():
            closing.result()

    async def _close(self) -> None:
        self._admission.close()
        grace = 0.0
        try:
            if self._transactions is not None:
                await self._transactions.finish()
            await self._sender.flush()
            await self._reporters.close()
            grace = self._config.request_timeout_ms / 1000
        finally:
            self._sender.abort(
                KafkaError(
                    "the producer was closed before the record was delivered: "
                    "close() without a time-out, or flush() before it, waits for all"
                )
            )
            try:
                await self._lane.stopped(grace)
            finally:
                self._hooks.close()  # every record has ended; what follows may be cancelled
                self._affinity.leave()
                try:
                    await self._reporters.close(0.0)
                finally:
                    await self._sender.stop(grace)

    # Records

    def _send_otherwise(
        self,
        topic: Any,
        value: Any,
        key: Any,
        partition: Any,
        timestamp_ms: Any,
        headers: Any,
        *,
        serialize: bool = True,
    ) -> Delivery:
        record = fields_of(topic, value, key, partition, timestamp_ms, headers)
        self._affinity.check()
        admitted = self._admission.let_in(*record, serialize=serialize)
        return admitted.delivery() if isinstance(admitted, ParkedRecord) else admitted

    def _enqueue_otherwise(
        self,
        topic: Any,
        value: Any,
        key: Any,
        partition: Any,
        timestamp_ms: Any,
        headers: Any,
        *,
        serialize: bool = True,
    ) -> Coroutine[Any, Any, Delivery]:
        given = (topic, value, key, partition, timestamp_ms, headers)
        try:
            self._affinity.check()
        except IllegalStateException:  # another thread may make the coroutine, for the loop to run
            return Enqueuing(None, partial(self._enqueue_on_loop, *given, serialize=serialize))
        loop = self._affinity.loop
        try:
            record = fields_of(*given)
        except IllegalArgumentException as error:
            return Enqueuing(loop, partial(_refuse, error))
        try:
            admitted = self._admission.let_in(*record, asyncio.Condition, serialize=serialize)
        except Exception as error:
            return Enqueuing(loop, partial(_refuse, error), forgotten=partial(self._admission.unread, record[0], error))
        if isinstance(admitted, Delivery):
            return self._after_a_turn(admitted) if self._accumulator.must_yield else enqueued(admitted)
        return Enqueuing(
            loop,
            partial(self._placed, admitted),
            given_up=partial(self._lot.withdraw, admitted),
            forgotten=partial(self._lot.adopt, admitted),
        )

    async def _enqueue_on_loop(self, *given: Any, serialize: bool) -> Delivery:
        self._affinity.check()
        return await self._enqueue_otherwise(*given, serialize=serialize)

    async def _placed(self, record: ParkedRecord) -> Delivery:
        await placed(self._lot, record)
        if record.result.state != FORWARDED:
            raise record.result.raised(0)
        return record.delivery()

    def _after_a_turn(self, delivery: Delivery) -> Coroutine[Any, Any, Delivery]:
        return Enqueuing(None, partial(_after_a_turn, delivery))

    def flush(self) -> Coroutine[Any, Any, None]:
        """Returns when everything accepted before the call has been delivered or has failed; ignores linger.ms.

        Called within an interceptor, serializer, partitioner or delivery callback, it raises IllegalStateException.
        """
        self._affinity.check()
        self._hooks.check_outside("flush()")
        return self._sender.flush()

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The topic's partitions, leaders and replicas; TimeoutException if unknown after max.block.ms."""
        self._affinity.check()
        return await self._sender.partitions_for(topic)

    def explain(self, topic: str, partition: int) -> Explanation:
        """Why this partition's oldest batch not under way has not been sent, in words and as values.

        Changes nothing. Its cost is proportional to the number of batches that have not ended: not for the hot path.
        """
        self._affinity.check()
        if not topic:
            raise IllegalArgumentException("the topic is empty")
        given: object = partition
        if not isinstance(given, int) or given < 0:
            raise IllegalArgumentException(f"partition is {partition!r}; it must be an int from 0 on")
        return self._sender.explain(topic, partition)

    def metrics(self) -> MetricsSnapshot:
        """Kafka's producer metrics at this moment; see ``docs/metrics.md``."""
        return self._metrics.snapshot(self._seconds())

    def health(self, thresholds: HealthThresholds | None = None) -> list[HealthFinding]:
        """What the metrics show to be wrong, worst first, and what to do about it; an empty list if all is well."""
        return findings(self.metrics(), self._config, thresholds)

    def __repr__(self) -> str:
        """Client id, state and the amount not delivered, at constant cost."""
        if not hasattr(self, "_affinity"):  # the constructor refused its configs
            return object.__repr__(self)
        config = self._config
        servers, more = config.bootstrap_servers[:3], len(config.bootstrap_servers) - 3
        others = f" and {more} more" if more > 0 else ""
        state = "; ".join(self._state())
        return f"<{type(self).__name__} {config.client_id!r} of {printable(','.join(servers))}{others}: {state}>"

    # Within

    def _state(self) -> Iterator[str]:
        if self._closing is not None and self._closing.done():
            yield "closed"
            return
        if self._affinity.loop is None:
            yield "not started"
            return
        if self._affinity.forked:
            yield "started in another process"
            return
        fatal = self._sender.fatal
        if fatal is not None:
            yield f"failed: {type(fatal).__name__}: {str(fatal)[:_MOST_OF_AN_ERROR]}"
        else:
            yield "running" if self._closing is None else "closing"
            if self._transactions is not None:
                yield self._transactions.status.state.value
        yield f"{counted(self._sender.pending(), 'batch has', 'batches have')} not ended"
        if parked := len(self._lot):
            missing = "a serializer, metadata or memory" if len(self._lot.serializing) else "metadata or memory"
            yield f"{counted(parked, 'record waits', 'records wait')} for {missing}"

    def _make_sender(self) -> Sender:
        """The Sender; a mock has another Sender, and another admission."""
        return Sender(self._config, self._accumulator, self._lot, self._metrics, self._failures, self._random)

    def _make_admission(self, loop: asyncio.AbstractEventLoop) -> Admission:
        return Admission(
            loop,
            self._config,
            self._accumulator,
            self._lot,
            self._sender,
            self._hooks,
            self._metrics,
            self._failures,
            check_place=self._affinity.check,
        )

    def _one_by_one(self, *, serialize: bool) -> bool:
        """Whether a bulk send calls hooks for each record; serializers count only if ``serialize``."""
        return self._hooked if serialize else self._hooks.intercepts() or self._hooks.partitions()

    def _bulk_send(self, topic: str, *, serialize: bool = True) -> BulkSend:
        given: object = topic
        if not isinstance(given, str) or not given:
            raise IllegalArgumentException(f"the topic is {topic!r:.100}; it must be the name of one")
        self._affinity.check()
        self._admission.check_open()
        hooked = self._one_by_one(serialize=serialize)
        return BulkSend(topic, self._accumulator, self._admission, self._lot, hooked=hooked, serialize=serialize)

    def _transactional_call_took(self, call: str, seconds: float) -> None:
        self._metrics.transactional_call(call, seconds)

    def _seconds(self) -> float:
        loop = self._affinity.loop
        return 0.0 if loop is None else loop.time()

    def _transactional(self, call: str) -> TransactionManager:
        self._affinity.check()
        self._hooks.check_outside(call)
        if self._closing is not None:
            raise IllegalStateException("the producer is closed; make a new one")
        if self._transactions is None:
            raise IllegalStateException(f"{call} needs a transactional.id: make the producer with one")
        return self._transactions


async def _after_a_turn(delivery: Delivery) -> Delivery:
    await asyncio.sleep(0)
    return delivery


async def _refuse(error: Exception) -> Delivery:
    raise error
