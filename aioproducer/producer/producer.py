"""The producer as its users see it: ``send``, ``enqueue``, ``flush``, ``close``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack
from uuid import UUID

from aioproducer.build_info import say_if_interpreted
from aioproducer.config_types import ProducerConfigs
from aioproducer.configs.producer_config import ProducerConfig, producer_config, with_serializers
from aioproducer.configs.properties import given_configs
from aioproducer.errors import IllegalArgumentException, IllegalStateException, KafkaError
from aioproducer.errors.printable import printable
from aioproducer.metrics import MetricsSnapshot, ProducerMetrics
from aioproducer.metrics.producer_metrics import Gauges
from aioproducer.metrics.registry import RecordingLevel
from aioproducer.net.addresses import parse_addresses
from aioproducer.prepared_txn_state import PreparedTxnState
from aioproducer.producer.admission.admission import record_of
from aioproducer.producer.admission.enqueuing import Enqueuing
from aioproducer.producer.admission.record_entry import after_a_turn, refuse
from aioproducer.producer.bulk.result import BulkResult
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.diagnosis.explanation import Explanation
from aioproducer.producer.diagnosis.health import HealthFinding, HealthThresholds, findings
from aioproducer.producer.diagnosis.wording import counted
from aioproducer.producer.hooks.hooks import Hooks
from aioproducer.producer.inputs import Inputs
from aioproducer.producer.loop_affinity import LoopAffinity, here
from aioproducer.producer.metric_reporters import Reporters
from aioproducer.producer.producer_type import ProducerType
from aioproducer.producer.record_calls import RecordCalls
from aioproducer.producer.units.unit import Unit
from aioproducer.protocol.text_check import check_topic
from aioproducer.records.compression import CompressionType, check_codec
from aioproducer.serializers import SerializerLike
from aioproducer.tasks.cancelled_scopes import completed_in_cancelled_scopes
from aioproducer.tasks.own_task import start_task
from aioproducer.timing.clock import Clock, SystemClock
from aioproducer.types import ConsumerGroupMetadata, Headers, K, OffsetAndMetadata, PartitionInfo, TopicPartition, V

if TYPE_CHECKING:
    from random import Random

    from aioproducer.producer.bulk.bulk_send import BulkSend
    from aioproducer.producer.core import ProducerCore
    from aioproducer.producer.transactions.timed_transactions import TimedTransactions

_MOST_OF_AN_ERROR: Final = 300
"""The most characters of an error in the producer's ``repr``."""


class KafkaProducer(RecordCalls[K, V], metaclass=ProducerType):
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
        self._cut_short = False
        """A caller of close has left it by time-out or cancellation."""
        self._ending = False
        """close fails the remaining records in turns of the loop: leaving it does not interrupt that."""
        # The inputs of a run besides its loop; a simulation replaces them.
        self._clock: Clock = SystemClock()
        self._random: Random | None = None
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
            gauges=self._gauges,
        )
        self._reporters = Reporters(self._config.metric_reporters)
        self._wire = _wiring()
        self._core: ProducerCore

    @classmethod
    def from_config(cls, config: Mapping[str, object] | str) -> Self:
        """A producer from Kafka's dotted names, as a mapping or as the text of a ``.properties`` file."""
        return cls(**given_configs(config))

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
        self._core = core = self._assemble()
        self._accumulator = core.accumulator
        self._affinity.enter()
        core.sender.start()
        if core.telemetry is not None:
            core.telemetry.start()
        say_if_interpreted()
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
        delivery.timeout.ms, or as long as units may take (``docs/units.md``); 0 stops at once. Closing twice is
        harmless: all callers wait for the same end, and the first caller that times out or is cancelled ends
        the wait for all. A call from an interceptor, serializer, partitioner or delivery callback, which a task
        then awaits, stops at once and ignores the ``timeout``. In an anyio scope that is already cancelled,
        ``close`` still delivers, as in a cancelled asyncio task.
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
                if not self._cut_short:  # twice would interrupt what follows
                    self._cut_short = True
                    if not self._ending:
                        closing.cancel()
                try:
                    with completed_in_cancelled_scopes():
                        await asyncio.wait([closing])
                finally:
                    if not closing.done():
                        self._core.sender.abort_at_once(_closed_too_early())  # the caller leaves now
        if not closing.cancelled():
            closing.result()

    async def _close(self) -> None:
        self._core.admission.close()
        grace = 0.0
        units = self._core.units
        try:
            if units is not None:
                await units.finish()
            if self._core.transactions is not None:
                await self._core.transactions.finish()
            await self._core.sender.flush()
            await self._reporters.close()
            if self._core.telemetry is not None:
                await self._core.telemetry.close()
            grace = self._config.request_timeout_ms / 1000
        finally:
            if units is not None:
                units.stop(
                    KafkaError(
                        "the producer was closed before the unit was committed: close() without a time-out waits for it"
                    )
                )
            try:
                self._ending = True
                await self._core.sender.abort_in_turns(_closed_too_early())
                self._ending = False
                if self._cut_short:
                    grace = 0.0
                await self._core.lane.stopped(grace)
            finally:
                self._hooks.close()  # every record has ended; what follows may be cancelled
                self._affinity.leave()
                try:
                    await self._reporters.close(0.0)
                finally:
                    await self._core.sender.stop(grace)

    # Records

    def _send_otherwise(self, *given: Any) -> Delivery:
        record = record_of(*given)
        self._affinity.check()
        return self._core.entry.send(record)

    def _enqueue_otherwise(self, *given: Any) -> Coroutine[Any, Any, Delivery]:
        try:
            self._affinity.check()
        except IllegalStateException:  # another thread may make the coroutine, for the loop to run
            return Enqueuing(None, partial(self._enqueue_on_loop, *given))
        try:
            record = record_of(*given)
        except IllegalArgumentException as error:
            return Enqueuing(self._core.loop, partial(refuse, error))
        return self._core.entry.enqueue(record)

    async def _enqueue_on_loop(self, *given: Any) -> Delivery:
        self._affinity.check()
        return await self._enqueue_otherwise(*given)

    def _after_a_turn(self, delivery: Delivery) -> Coroutine[Any, Any, Delivery]:
        return after_a_turn(delivery)

    async def send_many(
        self,
        topic: str,
        values: Iterable[V | None],
        *,
        keys: Iterable[K | None] | None = None,
        partitions: Iterable[int | None] | None = None,
        timestamps_ms: Iterable[int | None] | None = None,
        headers: Iterable[Headers | None] | None = None,
    ) -> BulkResult:
        """Sends a record for each value, with back-pressure, and returns when all of them have ended.

        The other iterables have one item for every value, with the same meaning as for ``send``; None where ``send``
        would be given none. Lists, generators and other iterables are read in order, a little ahead, as there is room.
        Records of one partition are sent in that order.

        A record that fails does not affect the others: the result has its index and the error that ``send`` or its
        delivery would have raised, which is logged if nobody looks at it. If a record has waited max.block.ms for
        memory or metadata, or the producer is closed meanwhile, all later records fail with the same error without
        being tried.

        Raises IllegalArgumentException for arguments that are not iterable or not of the same length, and whatever an
        iterable raises. If the error appears on the way, the records before it are sent first, and a note on the
        exception gives their outcome. If the call is cancelled, it sends no more. Records in the accumulator by then
        stay under way, ``flush`` waits for them, and their failures are logged.

        A transaction fails if the call is cancelled before it has sent all its records, and cannot be committed while
        records are still to be sent. The call sends nothing to the next transaction.
        """
        bulk = self._bulk_send(topic)
        from aioproducer.producer.bulk.columns import Columns

        columns = Columns(values, keys=keys, partitions=partitions, timestamps_ms=timestamps_ms, headers=headers)
        return await bulk.send(columns)

    async def send_table(
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
        """``send_many`` for a table: a record for each row, made from the named columns, without a Python object each.

        The table is anything with ``__arrow_c_stream__``: from pyarrow, polars or pandas (2.2 or newer), or a stream of
        record batches, which is read as there is room. It is read through pyarrow, on the event loop. A source that
        must wait for its batches or compute them should do so elsewhere: the table may also be an asynchronous iterable
        of such tables or batches, each of which is awaited when there is room. Row numbers continue from one to the
        next. If the columns of one are wrong, this is raised after the rows before it were sent.

        ``value`` and ``key``: text or bytes of any kind, also as a dictionary. ``partition``: integers. ``timestamp``:
        timestamps, dates, or integers in milliseconds. ``headers``: a list of structs of name and value, or a map.
        Null means what None means to ``send``, and so does -1 for partition and timestamp. Columns are sent as they
        are, without the producer's serializers; interceptors and the partitioner are called for every record.

        Errors and cancellation are those of ``send_many``; indices are row numbers. Raises IllegalArgumentException
        for a column that is missing or of the wrong type, before anything is sent.
        """
        bulk = self._bulk_send(topic, serialize=False)
        roles = {"value": value, "key": key, "partition": partition, "timestamp": timestamp, "headers": headers}
        is_stream = isinstance(table, AsyncIterable)
        from aioproducer.producer.bulk.table_columns import TableColumns
        from aioproducer.producer.bulk.table_stream import TableStream

        return await bulk.send(TableStream(table, **roles) if is_stream else TableColumns(table, **roles))

    def flush(self) -> Coroutine[Any, Any, None]:
        """Returns when everything accepted before the call has been delivered or has failed; ignores linger.ms.

        Called within an interceptor, serializer, partitioner or delivery callback, it raises IllegalStateException.
        """
        self._affinity.check()
        self._hooks.check_outside("flush()")
        return self._core.sender.flush()

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The topic's partitions, leaders and replicas; TimeoutException if unknown after max.block.ms."""
        check_topic(topic)
        self._affinity.check()
        return await self._core.sender.partitions_for(topic)

    def explain(self, topic: str, partition: int) -> Explanation:
        """Why this partition's oldest batch not under way has not been sent, in words and as values.

        Changes nothing. Its cost is proportional to the number of batches that have not ended: not for the hot path.
        """
        self._affinity.check()
        check_topic(topic)
        given: object = partition
        if not isinstance(given, int) or given < 0:
            raise IllegalArgumentException(f"partition is {partition!r}; it must be an int from 0 on")
        return self._core.sender.explain(topic, partition)

    def metrics(self) -> MetricsSnapshot:
        """Kafka's producer metrics at this moment; see ``docs/metrics.md``."""
        return self._metrics.snapshot(self._seconds())

    def health(self, thresholds: HealthThresholds | None = None) -> list[HealthFinding]:
        """What the metrics show to be wrong, worst first, and what to do about it; an empty list if all is well."""
        return findings(self._overview(), self._config, thresholds)

    def _overview(self) -> MetricsSnapshot:
        """The metrics without those of topics and partitions, which may be very many."""
        return self._metrics.overview(self._seconds())

    async def client_instance_id(self, timeout: float) -> UUID:
        """The id that the cluster has given this producer for the metrics that it pushes (KIP-714). It stays the same.

        Connects to a broker if none is connected. Raises TimeoutException if the id is not known after ``timeout``
        seconds; brokers before 3.7, and those without a receiver of metrics, never give one. Raises
        IllegalStateException if enable.metrics.push is false.
        """
        self._affinity.check()
        if not self._config.enable_metrics_push or self._core.telemetry is None:
            raise IllegalStateException("there is no client instance id: enable.metrics.push is false")
        return await self._core.telemetry.client_instance_id(timeout)

    def __repr__(self) -> str:
        """Client id, state and the amount not delivered, at constant cost."""
        if not hasattr(self, "_affinity"):  # the constructor refused its configs
            return object.__repr__(self)
        config = self._config
        servers, more = config.bootstrap_servers[:3], len(config.bootstrap_servers) - 3
        others = f" and {more} more" if more > 0 else ""
        state = "; ".join(self._state())
        return f"<{type(self).__name__} {config.client_id!r} of {printable(','.join(servers))}{others}: {state}>"

    # Transactions (KIP-98); docs/transactions.md has the promises

    async def init_transactions(self, *, keep_prepared_txn: bool = False) -> PreparedTxnState:
        """Takes over the transactional.id: a producer that had it before is fenced, and its open transaction aborted.

        Call it once, before the first transaction. TimeoutException after max.block.ms: calling again waits on.

        With ``keep_prepared_txn`` (KIP-939) the open transaction stays, and its state is returned: end it by
        ``complete_transaction``, ``commit_transaction`` or ``abort_transaction``. The state is false if there is none.
        Needs transaction.two.phase.commit.enable=true (InvalidTxnStateException), and a broker that can keep it
        (UnsupportedVersionException: Kafka up to 4.3.1 cannot).
        """
        return await self._transactional("init_transactions()").init(keep_prepared_txn=keep_prepared_txn)

    async def begin_transaction(self) -> None:
        """Begins a transaction: it includes all records from now on. Sends nothing to a broker.

        If the caller of an abort was cancelled, this waits for that abort to end, at most max.block.ms.
        End the transaction within transaction.timeout.ms: otherwise the coordinator aborts it, and to commit it then
        leaves the producer unusable.
        """
        await self._transactional("begin_transaction()").begin()

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group: ConsumerGroupMetadata | str,
    ) -> None:
        """Makes a group's offsets (of the next records to read) part of the transaction.

        ``group`` is the consumer's membership in the group, or the id of a group without members (KIP-447).
        """
        metadata = ConsumerGroupMetadata(group) if isinstance(group, str) else group
        await self._transactional("send_offsets_to_transaction()").send_offsets(offsets, metadata)

    async def prepare_transaction(self) -> PreparedTxnState:
        """Delivers every record of the transaction, which then stays as it is until it is ended: the first phase of a
        two-phase commit (KIP-939), whose decision is made elsewhere.

        Store the state that is returned together with the decision, and call ``complete_transaction`` with what is
        stored. Until the transaction has ended, also across restarts, committed readers wait for it. ``close`` leaves
        it as it is.

        InvalidTxnStateException without transaction.two.phase.commit.enable=true. Other errors, time-outs and
        cancellation as with :meth:`commit_transaction`.
        """
        return await self._transactional("prepare_transaction()").prepare()

    async def complete_transaction(self, state: PreparedTxnState) -> bool:
        """Commits the prepared transaction if ``state`` is its state, and aborts it otherwise (KIP-939).

        Returns whether it was committed. InvalidTxnStateException if no transaction is prepared. Other errors,
        time-outs and cancellation as with :meth:`commit_transaction`.
        """
        return await self._transactional("complete_transaction()").complete(state)

    async def commit_transaction(self) -> None:
        """Delivers every record of the transaction, and commits it.

        TransactionAbortableException if a record could not be delivered: then abort. ProducerFencedException if a newer
        producer has taken over. TimeoutException after max.block.ms: the commit continues, and calling again waits for
        its end. Cancelling the waiting task does not undo the commit either.

        InvalidTxnStateException, or ProducerFencedException with a broker before 4.0, if the transaction was open for
        longer than transaction.timeout.ms: the coordinator has aborted it, and the producer is unusable. Close it, and
        repeat the transaction with a new one.
        """
        await self._transactional("commit_transaction()").commit()

    async def abort_transaction(self) -> None:
        """Aborts the transaction: committed readers see none of its records, and unsent ones fail with
        TransactionAbortedException.

        Time-outs and cancellation as with :meth:`commit_transaction`.
        """
        await self._transactional("abort_transaction()").abort()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A transaction: committed at the end of the block, aborted if that raises or is cancelled.

        ::

            async with producer.transaction():
                producer.send("orders", b"value")
        """
        async with self._transactional("transaction()").block():
            yield self

    def unit(self) -> Unit[K, V]:
        """A unit of work: the records of one handler, committed as a whole in a transaction that many units share.

        ::

            async with producer.unit() as unit:
                await unit.send("orders", b"order", key=b"42")
                await unit.send("audit", b"entry", key=b"42")

        The block returns when the unit is committed; if it raises, nothing of the unit is sent. Any number of tasks may
        be in such blocks at once (``docs/units.md``). Call ``init_transactions`` first. While units are in use, the
        calls above and records outside units are refused with IllegalStateException, and units while a transaction is
        open by hand.
        """
        units = self._core_of_units("unit()").units
        assert units is not None
        return units.unit()

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
        fatal = self._core.sender.fatal
        if fatal is not None:
            yield f"failed: {type(fatal).__name__}: {str(fatal)[:_MOST_OF_AN_ERROR]}"
        else:
            yield "running" if self._closing is None else "closing"
            if self._core.transactions is not None:
                yield self._core.transactions.status.state.value
        yield f"{counted(self._core.sender.pending(), 'batch has', 'batches have')} not ended"
        if parked := len(self._core.lot):
            missing = "a serializer, metadata or memory" if len(self._core.lot.serializing) else "metadata or memory"
            yield f"{counted(parked, 'record waits', 'records wait')} for {missing}"

    def _assemble(self) -> ProducerCore:
        """The core; a mock has another Sender, and another admission."""
        return self._wire(self._inputs())

    def _inputs(self) -> Inputs:
        from random import Random

        return Inputs(
            self._config, self._hooks, self._metrics, self._clock, self._random or Random(), self._affinity.check
        )

    def _gauges(self) -> Gauges:
        """The figures that are read, not counted; the producer may not be started."""
        if self._affinity.loop is None:
            return Gauges(buffer_available=self._config.buffer_memory)
        core = self._core
        return Gauges(
            buffer_available=core.accumulator.pool.available,
            waiting=len(core.lot.memory),
            parked_bytes=core.lot.bytes,
            parked_records=len(core.lot),
            requests_in_flight=core.sender.requests_in_flight(),
            unanswered_since=core.sender.unanswered_since(),
            metadata_time=core.sender.metadata_time(),
            unreachable_since=core.sender.unreachable_since(),
            failed=core.sender.fatal is not None,
            units_open=0 if core.units is None else core.units.open,
            units_waiting=0 if core.units is None else core.units.waiting,
            unit_bytes=0 if core.units is None else core.units.memory.held,
        )

    def _one_by_one(self, *, serialize: bool) -> bool:
        """Whether a bulk send calls hooks for each record; serializers count only if ``serialize``."""
        return self._hooked if serialize else self._hooks.intercepts() or self._hooks.partitions()

    def _bulk_send(self, topic: str, *, serialize: bool = True) -> BulkSend:
        """What carries out one bulk call; IllegalStateException if no call may be made here and now."""
        check_topic(topic)
        self._affinity.check()
        core = self._core
        core.admission.check_open()
        hooked = self._one_by_one(serialize=serialize)
        from aioproducer.producer.bulk.bulk_send import BulkSend

        return BulkSend(topic, core.accumulator, core.admission, core.lot, hooked=hooked, serialize=serialize)

    def _seconds(self) -> float:
        loop = self._affinity.loop
        return 0.0 if loop is None else loop.time()

    def _transactional(self, call: str) -> TimedTransactions:
        """What carries out the call; IllegalStateException if the call is not allowed here and now."""
        core = self._core_of_units(call)
        if core.units is not None and core.units.in_use():
            raise IllegalStateException(
                f"{call} was called while units are in use, which have transactions of their own: wait for their ends"
            )
        assert core.transactions is not None
        from aioproducer.producer.transactions.timed_transactions import TimedTransactions

        return TimedTransactions(core.transactions, self._metrics, core.loop.time)

    def _core_of_units(self, call: str) -> ProducerCore:
        """The parts of a producer with a transactional.id; IllegalStateException if the call is not allowed here."""
        self._affinity.check()
        self._hooks.check_outside(call)
        if self._closing is not None:
            raise IllegalStateException("the producer is closed; make a new one")
        if self._core.transactions is None:
            raise IllegalStateException(f"{call} needs a transactional.id: make the producer with one")
        return self._core


def _wiring() -> Callable[[Inputs], ProducerCore]:
    """What wires a producer. The first one that is made has it imported, and what sends many records: that takes no
    time in programs that make none, and none of the loop when the producer starts."""
    import aioproducer.producer.bulk.bulk_send  # noqa: F401
    from aioproducer.producer.assembly import assemble

    return assemble


def core_of(producer: KafkaProducer[Any, Any]) -> ProducerCore:
    """What a started producer consists of: for the face for threads, and for the Spark sink."""
    return producer._core


def hooks_of(producer: KafkaProducer[Any, Any]) -> Hooks:
    """The user's code, which is there before the start."""
    return producer._hooks


def _closed_too_early() -> KafkaError:
    return KafkaError(
        "the producer was closed before the record was delivered: "
        "close() without a time-out, or flush() before it, waits for all"
    )
