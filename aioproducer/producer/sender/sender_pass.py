"""One pass of the Sender, each time it wakes.

Each pass costs in proportion to what is ready. The rules (``schedule``, ``drain``, ``completion``, ``sequences``)
decide; this module acts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import TimeoutException
from aioproducer.metrics import ProducerMetrics
from aioproducer.net.broker_link import BrokerLink
from aioproducer.net.client import KafkaClient
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.producer_batch import ProducerBatch
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.exchange.batch_completer import BatchCompleter
from aioproducer.producer.exchange.produce_exchange import ProduceExchange
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.scheduling.broker_availability import NodeLatencies
from aioproducer.producer.scheduling.drain import drain
from aioproducer.producer.scheduling.line_limit import LineLimits
from aioproducer.producer.scheduling.pipeline import Pipeline
from aioproducer.producer.scheduling.readiness import NO_LEADER
from aioproducer.producer.scheduling.schedule import Schedule
from aioproducer.producer.scheduling.wait_history import READY, WaitHistory
from aioproducer.producer.sender.alarm import Alarm
from aioproducer.producer.sender.compressor import Compressor
from aioproducer.producer.sender.explain import link_reason
from aioproducer.producer.sender.producer_id import ProducerIdSource
from aioproducer.producer.transactions.transaction_manager import TransactionManager
from aioproducer.timing.time_slice import TimeSlice

WANTED_EVERY: Final = 1.0
"""Seconds between two reports to metadata that a topic is in use; metadata forgets a topic only after several."""


@final
class SenderPass:
    """Finds what is due and sends what is ready. Times are the loop's, in seconds.

    ``why_not_delivered(queue, batch)`` and ``no_metadata(topic, since)`` give the causes of a time-out.
    """

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: RecordAccumulator,
        lot: ParkingLot,
        metrics: ProducerMetrics,
        failures: FailureLog,
        *,
        alarm: Alarm,
        client: KafkaClient,
        completer: BatchCompleter,
        compressor: Compressor,
        exchange: ProduceExchange,
        history: WaitHistory,
        id_source: ProducerIdSource,
        latencies: NodeLatencies | None,
        lines: LineLimits,
        pipeline: Pipeline | None,
        schedule: Schedule,
        thread_bytes: int,
        why_not_delivered: Callable[[PartitionQueue, ProducerBatch], str],
        no_metadata: Callable[[str, float], TimeoutException],
    ) -> None:
        self.transactions: TransactionManager | None = None
        self.count = 0
        """The number of passes."""
        self._accumulator = accumulator
        self._lot = lot
        self._metrics = metrics
        self._failures = failures
        self._alarm = alarm
        self._client = client
        self._completer = completer
        self._compressor = compressor
        self._exchange = exchange
        self._history = history
        self._id_source = id_source
        self._latencies = latencies
        self._lines = lines
        self._pipeline = pipeline
        self._schedule = schedule
        self._thread_bytes = thread_bytes
        self._why_not_delivered = why_not_delivered
        self._no_metadata = no_metadata
        self._timeout = config.delivery_timeout_ms / 1000
        self._max_request_size = config.max_request_size
        self._keep_order = config.max_in_flight_requests_per_connection == 1
        self._loop = accumulator.loop
        self._since_last = TimeSlice(self._loop)
        """``enqueue`` has had the loop for itself since the last pass."""
        self._sending = TimeSlice(self._loop)

    # Called by the accumulator

    def batch_opened(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self._completer.incomplete.add(batch, queue)
        if batch.created - queue.wanted_at >= WANTED_EVERY:
            queue.wanted_at = batch.created
            self._client.use_topic(queue.topic)
        if self.transactions is not None:
            self.transactions.partition_used(queue)
        self._schedule.opened(queue, batch)
        if self._pipeline is not None:
            self._metrics.batch_lingers((queue.close_at - batch.created) * 1000, batch.created)

    def batch_full(self, queue: PartitionQueue) -> None:
        now = self._loop.time()
        batch = queue.batches[-1]
        if batch.size() >= self._thread_bytes:
            self._compressor.begin(queue, batch)
        self._schedule.full(queue, now)
        if self._since_last.over():
            self._accumulator.must_yield = True

    # A pass

    def run(self) -> None:
        """Ends or sends what is due, and gives freed memory to waiting records."""
        now = self._loop.time()
        self._since_last.begin()
        self.count += 1
        self._accumulator.must_yield = False
        wants_turn = self._schedule.take_due(now)
        self._completer.expire(now, self._why_not_delivered)
        if self._somebody_parked():
            self._lot.expire(now, self._no_metadata)
        self._schedule.hurry(now, wanted=bool(self._lot.memory.records) and not self._lot.paused)
        if self._id_source.ids.current is None and self.transactions is None:
            self._id_source.ask_if_missing(work=self._completer.incomplete.oldest is not None)
        self._alarm.up()  # all rings so far are handled below
        if wants_turn:
            self._alarm.ring()
        for node in self._schedule.ready.nodes():
            self._send_to(node, now)
        self._failures.write(now)
        self._wake_at(self._schedule.next())
        self._wake_at(self._completer.next_expiry())
        self._wake_at(self._failures.next())
        if self._somebody_parked():
            self._wake_at(self._lot.next_deadline())
            if self._lot.paused:
                self._alarm.ring()

    def _somebody_parked(self) -> bool:
        return bool(self._lot.memory.records or self._lot.metadata or self._lot.serializing.records)

    def _wake_at(self, when: float | None) -> None:
        if when is not None:
            self._alarm.ring_at(when)

    def _send_to(self, node: int, now: float) -> None:
        # The first bootstrap server has the same id as NO_LEADER.
        link = None if node == NO_LEADER else self._client.links.get(node)
        if link is None or not link.ready():
            self._note_link(node, link, now)
            if not self._schedule.ready.waiting(node):
                return
            if link is None:
                self._client.request_update()
            else:
                link.want()
                self._note_latency(node, now, can_send=False)
            return
        self._note_latency(node, now, can_send=link.can_send(now))
        ready = self._schedule.ready.of(node)
        line = self._lines.of(node)
        self._sending.begin()
        while ready and link.can_send(now):
            drained = drain(
                ready,
                self._accumulator,
                now,
                self._max_request_size,
                keep_order=self._keep_order,
                thread_bytes=self._thread_bytes,
                timeout=self._timeout,
                line=line,
            )
            if not drained:
                if line.large_at > now:
                    self._alarm.ring_at(line.large_at)
                break
            self._exchange.send(link, drained, now)
            if self._lot.memory.records:
                self._alarm.ring()  # a closed batch takes less than it was charged
            if self._sending.over():  # other tasks have a turn first
                if ready:
                    self._alarm.ring()
                break
        self._note_link(node, link, now)

    def _note_link(self, node: int, link: BrokerLink | None, now: float) -> None:
        """Records the node's state for the ledgers of time-outs."""
        if link is not None:
            reason = READY if link.can_send(now) else link_reason(link, now) or READY
        else:
            reason = Reason.NO_LEADER if node == NO_LEADER else Reason.LEADER_UNKNOWN
        self._history.node_is(node, now, reason)

    def _note_latency(self, node: int, now: float, *, can_send: bool) -> None:
        if self._latencies is not None:
            self._latencies.looked_at(node, now, can_send=can_send)
