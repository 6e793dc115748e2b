"""The Sender: one task that moves batches from the accumulator to the brokers and completes them.

It sleeps until a batch is ready, a deadline is due, an answer arrives or a link changes. Then it runs a ``SenderPass``.
This module has its life cycle, and its other services for the producer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from random import Random

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import AuthenticationException, IllegalStateException, KafkaError
from aioproducer.metrics import ProducerMetrics
from aioproducer.net.broker_link import BrokerLink, LinkState
from aioproducer.net.client import KafkaClient
from aioproducer.net.supervisor import Supervisor
from aioproducer.producer.accumulator.built_in_partitioner import Partitioning
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.producer_batch import ProducerBatch
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.accumulator.sequences import ProducerIds
from aioproducer.producer.accumulator.wait_all import all_ended
from aioproducer.producer.diagnosis.explanation import Explanation
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.exchange.batch_completer import BatchCompleter
from aioproducer.producer.exchange.produce_exchange import ProduceExchange
from aioproducer.producer.exchange.sealer import Sealer
from aioproducer.producer.parking.enqueue_wait import notify_all_settled, notify_settled
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.scheduling.broker_availability import NodeLatencies
from aioproducer.producer.scheduling.in_flight_windows import InFlightWindows
from aioproducer.producer.scheduling.line_limit import LineLimits
from aioproducer.producer.scheduling.pipeline import Pipeline
from aioproducer.producer.scheduling.schedule import Schedule
from aioproducer.producer.scheduling.topic_directory import TopicDirectory
from aioproducer.producer.scheduling.wait_history import WaitHistory
from aioproducer.producer.sender.alarm import Alarm
from aioproducer.producer.sender.compressor import Compressor
from aioproducer.producer.sender.explain import Situation, explain, why_not_delivered
from aioproducer.producer.sender.log_inquiry import LogInquiry
from aioproducer.producer.sender.metadata_waits import MetadataWaits
from aioproducer.producer.sender.producer_id import ProducerIdSource
from aioproducer.producer.sender.sender_pass import SenderPass
from aioproducer.producer.transactions.transaction_manager import TransactionManager
from aioproducer.records.compression import CompressionType
from aioproducer.timing.loop_clock import LoopClock
from aioproducer.timing.time_slice import TimeSlice
from aioproducer.types import PartitionInfo


class Sender:
    """Drains, sends, completes. Times are the loop's, in seconds."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: RecordAccumulator,
        lot: ParkingLot,
        metrics: ProducerMetrics,
        failures: FailureLog,
        random: Random,
    ) -> None:
        self._config = config
        self._lot = lot
        self._alarm = Alarm()
        lot.wake = self._alarm.ring
        self._metrics = metrics
        self._failures = failures
        failures.on_news = self._alarm.ring
        self._random = random
        self._loop = asyncio.get_running_loop()
        codec = CompressionType.of(config.compression_type)
        transactional = config.transactional_id is not None
        sealer = Sealer(
            codec,
            config.compression_level,
            accumulator,
            transactional=transactional,
            thread_bytes=config.compression_thread_bytes,
        )
        self.transactions: TransactionManager | None = None
        linger = config.linger_ms / 1000
        pipeline: Pipeline | None = None
        if config.pipeline == "auto":
            pipeline = Pipeline(linger, config.max_in_flight_requests_per_connection, config.batch_size)
        self._schedule = Schedule(
            linger,
            wake=self._alarm.ring,
            wake_at=self._alarm.ring_at,
            tick=LoopClock(self._loop).tick,
            pipeline=pipeline,
        )
        self._history = WaitHistory()
        self._notifying = TimeSlice(self._loop)
        self._stopped = False
        self._passed = asyncio.Event()
        """Wakes all tasks that wait for a pass."""
        self.fatal: KafkaError | None = None
        """Why this producer is unusable; None while it works."""
        self._supervisor = Supervisor(self._crashed)
        self._compressor = Compressor(
            sealer, self._loop, on_done=self._schedule.look_at, on_crash=self._supervisor.crash
        )
        self._completer = BatchCompleter(
            config,
            accumulator,
            metrics,
            failures,
            random,
            sealer,
            again=self._schedule.again,
            ask=lambda queue, batch: self._inquiry.begin(queue, batch),
            compress=self._compressor.begin,
            decompress=self._compressor.undo,
            history=self._history,
        )
        self._ids = ProducerIds()
        self._windows = InFlightWindows(metrics.windows)
        self._latencies: NodeLatencies | None = None
        if config.partitioner_availability_timeout_ms > 0:
            self._latencies = NodeLatencies(config.partitioner_availability_timeout_ms / 1000)
        self._topics = TopicDirectory(
            accumulator.topics,
            Partitioning(random, adaptive=config.adaptive_partitioning, unavailable=self._unavailable),
            self._schedule.ready,
            self._windows,
            self._ids if config.enable_idempotence else None,
            rack=config.client_rack if config.partitioner_rack_aware else None,
        )
        self._client = KafkaClient(
            config,
            self._supervisor,
            random,
            on_link=self._link_changed,
            follow=lambda cluster: self._topics.following(cluster, self._loop.time()),
            on_metadata=self._metadata_arrived,
            on_refused=self._refused,
            topics_in_use=self._topics_in_use,
            metrics=metrics.network,
        )
        self._inquiry = LogInquiry(config, self._client, self._supervisor, random, on_answer=self._found)
        self._id_source = ProducerIdSource(
            config,
            self._client,
            self._ids,
            self._supervisor,
            random,
            on_id=lambda: self._schedule.look_at(*self._completer.incomplete.queues()),
            on_refused=self._id_refused,
            on_fatal=self._fatal,
        )
        self._waits = MetadataWaits(self._client, lot, self._history, config.max_block_ms / 1000, self._ended)
        request_timeout, pause = config.request_timeout_ms / 1000, config.retry_backoff_max_ms / 1000
        lines = LineLimits(request_timeout, pause, config.max_request_size)
        self._exchange = ProduceExchange(
            config,
            self._client,
            self._completer,
            sealer,
            self._topics,
            self._windows,
            lines,
            metrics,
            time=self._loop.time,
            now_ms=accumulator.now_ms,
            wake=self._alarm.ring,
            pipeline=pipeline,
        )
        self._situation = Situation(
            config,
            self._client,
            accumulator.topics,
            self._completer.incomplete,
            lot,
            self._id_source,
            lambda: None if self.transactions is None else self.transactions.last_error,
            pipeline,
            lines,
        )
        self._pass = SenderPass(
            config,
            accumulator,
            lot,
            metrics,
            failures,
            alarm=self._alarm,
            client=self._client,
            completer=self._completer,
            compressor=self._compressor,
            exchange=self._exchange,
            history=self._history,
            id_source=self._id_source,
            latencies=self._latencies,
            lines=lines,
            pipeline=pipeline,
            schedule=self._schedule,
            thread_bytes=sealer.thread_bytes,
            why_not_delivered=self._why_not_delivered,
            no_metadata=self._waits.too_long,
        )
        accumulator.on_open = self._pass.batch_opened
        accumulator.on_full = self._pass.batch_full

    def start(self) -> None:
        self._client.start()
        self._supervisor.launch(self._run(), "aioproducer sender")
        if self.transactions is None:
            self._lot.open()
        self._alarm.ring()

    def make_transactional(self) -> TransactionManager:
        """Makes the producer transactional; no record is accepted before a transaction has begun."""
        self._ids.transactional = True
        self.transactions = self._exchange.transactions = self._pass.transactions = TransactionManager(
            self._config,
            self._client,
            self._ids,
            self._random,
            gate=lambda is_open: self._lot.open() if is_open else self._lot.shut(),
            flush=self.flush,
            give_up=self._give_up_waiting,
            ready=self._schedule.look_at,
            fatal=self._fatal,
            news=self._passed.wait,
            spawn=self._supervisor.spawn,
        )
        self._completer.on_failed = self._lot.on_failed = self.transactions.batch_failed
        return self.transactions

    def _give_up_waiting(self, error: KafkaError) -> None:
        self._lot.fail_all(error)
        self._completer.give_up_waiting(error)
        self._alarm.ring()

    # Needed by a send beyond the accumulator

    def parked(self, topic: str) -> None:
        """A record waits in the parking lot."""
        self._waits.parked(topic)
        self._alarm.ring()

    def known_partitions(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The topic's partitions; none while they are unknown."""
        known = self._client.metadata.cluster.topics.get(topic)
        return () if known is None else known.partitions

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The topic's partitions, waiting for them at most max.block.ms."""
        return await self._waits.partitions_for(topic)

    def pending(self) -> int:
        """Batches that have not ended."""
        return len(self._completer.incomplete)

    def requests_in_flight(self) -> int:
        return self._client.requests_in_flight()

    def metadata_time(self) -> float:
        """When metadata last arrived; minus infinity before that."""
        return self._client.metadata.updated_at

    def unreachable_since(self) -> float:
        """When the client found that no broker can be reached; NaN while one can be, or before the first attempt."""
        return self._client.unreachable_since

    async def flush(self) -> None:
        """Returns when everything accepted so far has ended, including parts of split batches; nothing lingers
        meanwhile."""
        began = self._loop.time()
        accepted = [batch.result for batch in self._completer.incomplete]
        accepted += [record.result for record in self._lot.records()]
        self._schedule.flush_begun(began)
        try:
            await all_ended(accepted)
        finally:
            self._schedule.flush_ended()
            self._metrics.flushed(self._loop.time() - began)

    # The task

    async def _run(self) -> None:
        while not self._stopped:  # the pass itself may have ended the producer
            await self._alarm.rung()
            self._pass.run()
            self._passed.set()
            self._passed.clear()  # waiters wake all the same
            if self._lot.settled:
                await notify_settled(self._lot, self._notifying)
                if self._lot.settled:
                    self._alarm.ring()

    # What changes around it

    def _unavailable(self) -> Collection[int]:
        """Nodes to avoid when choosing a partition."""
        return () if self._latencies is None else self._latencies.unavailable(self._loop.time())

    def _topics_in_use(self) -> set[str]:
        """Topics with records that have not ended: metadata must keep them, however long that takes."""
        return {queue.topic for queue in self._completer.incomplete.queues()} | set(self._lot.metadata)

    def _id_refused(self, error: KafkaError) -> None:
        self._lot.fail_all(error)
        self._completer.fail_all(error)
        self._alarm.ring()

    def _found(self, queue: PartitionQueue, batch: ProducerBatch, in_log: bool | None) -> None:
        self._completer.found(queue, batch, in_log)
        self._alarm.ring()

    def _link_changed(self, link: BrokerLink) -> None:
        if link.state is not LinkState.READY:  # ready() is False while a live connection re-authenticates
            self._windows.connection_lost(link.node_id)
        self._history.reachable(self._loop.time(), any_broker=self._client.reachable())
        self._alarm.ring()

    def _metadata_arrived(self) -> None:
        self._metrics.keep_topics(self._client.metadata.cluster.topics)
        self._waits.metadata_arrived()
        self._alarm.ring()

    def _refused(self, error: AuthenticationException) -> None:
        self._waits.refused(error)
        self._alarm.ring()

    # Ends

    def _crashed(self, error: BaseException) -> None:
        """A task that must not die has died: everything that waits for it must end."""
        failed = KafkaError(f"the producer failed: {type(error).__name__}: {error}")
        failed.__cause__ = error
        self._fatal(failed)

    def _fatal(self, error: KafkaError) -> None:
        self.fatal = error
        if self.transactions is not None:
            self.transactions.producer_failed(error)
        self.abort(error)
        # Nothing will be sent any more, so every record must end, even if close() is never called.
        self._supervisor.cancel_all()
        self._compressor.stop()
        self._stand_still()
        self._client.abort(error)
        if self._lot.settled:
            self._supervisor.launch(notify_all_settled(self._lot, self._notifying), "aioproducer notify")

    def abort(self, error: KafkaError) -> None:
        """Ends every record that has not ended, with ``error`` and its known outcome."""
        self._lot.shut()
        self._lot.fail_all(error, aborted=True)
        self._completer.abort(error)
        self._failures.close(self._loop.time())

    async def stop(self, grace: float) -> None:
        """Ends the tasks and closes the connections; what acks=0 wrote gets ``grace`` seconds to leave the sockets."""
        self._stand_still()
        self._supervisor.cancel_all()  # now: the caller of close may be cancelled at any await
        if self.transactions is not None:
            self.transactions.close()
        try:
            await notify_all_settled(self._lot, self._notifying)
            await self._compressor.stopped()
            await self._supervisor.stop()
            if self.transactions is not None:
                await self.transactions.closed()
        except asyncio.CancelledError:
            grace = 0.0  # the caller of close has no time left
            raise
        finally:
            await self._client.close(grace if self._config.required_acks == 0 else 0.0)

    def _ended(self) -> KafkaError | None:
        """Why all waits must end; None while the producer works."""
        if self.fatal is not None:
            return self.fatal.fresh()
        return IllegalStateException("the producer was closed while it waited for metadata") if self._stopped else None

    def _stand_still(self) -> None:
        self._alarm.stop()
        self._stopped = True
        self._client.changes.announce()

    # In words

    def explain(self, topic: str, partition: int) -> Explanation:
        return explain(self._situation, topic, partition, self._loop.time(), self.fatal)

    def _why_not_delivered(self, queue: PartitionQueue, batch: ProducerBatch) -> str:
        return why_not_delivered(self._situation, queue, batch, self._loop.time())[0].text
