"""Sends what is ready to each node, as much as its connection takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.net.broker_link import BrokerLink
from aioproducer.net.client import KafkaClient
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.batches.producer_batch import LEAST_WHOLE, NO_LIMIT, ProducerBatch
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.exchange.produce_exchange import ProduceExchange
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.scheduling.drain import drain
from aioproducer.producer.scheduling.first_share import all_are_awaited, first_share
from aioproducer.producer.scheduling.readiness import NO_LEADER
from aioproducer.producer.scheduling.scheduling import Scheduling
from aioproducer.producer.scheduling.wait_history import READY
from aioproducer.producer.sender.alarm import Alarm
from aioproducer.producer.sender.obstacles import link_reason
from aioproducer.timing.time_slice import TimeSlice

MOST_TOPICS: Final = 100
"""The most topics whose metadata is requested without the others' while their partitions have no leader."""


@final
class Dispatcher:
    """Drains the partitions that are ready into requests. Times are the loop's, in seconds."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: RecordAccumulator,
        lot: ParkingLot,
        scheduling: Scheduling,
        alarm: Alarm,
        client: KafkaClient,
        exchange: ProduceExchange,
        thread_bytes: int,
        cut: Callable[[PartitionQueue, ProducerBatch], object],
    ) -> None:
        self._accumulator = accumulator
        self._lot = lot
        self._schedule = scheduling.schedule
        self._history = scheduling.history
        self._latencies = scheduling.latencies
        self._lines = scheduling.lines
        self._alarm = alarm
        self._client = client
        self._exchange = exchange
        self._thread_bytes = thread_bytes
        self._cut = cut
        self._timeout = config.delivery_timeout_ms / 1000
        self._max_request_size = config.max_request_size
        self._keep_order = config.max_in_flight_requests_per_connection == 1
        self.sending = TimeSlice(accumulator.loop)
        """What one pass may take to send, to all nodes together."""

    def send_to(self, node: int, now: float) -> None:
        """Sends what is ready for this node, or has its connection made."""
        # The first bootstrap server has the same id as NO_LEADER.
        link = None if node == NO_LEADER else self._client.links.get(node)
        if link is None or not link.ready():
            self._note_link(node, link, now)
            if not self._schedule.ready.waiting(node):
                return
            if link is None:
                self._look_for_leaders(node)
            else:
                link.want()
                self._note_latency(node, now, can_send=False)
            return
        self._note_latency(node, now, can_send=link.can_send(now))
        ready = self._schedule.ready.of(node)
        line = self._lines.of(node)
        while ready and link.can_send(now) and not line.timely.is_full(link.in_flight()):
            opens_at = line.window.opens_at()
            if opens_at > now and not all_are_awaited(ready):
                self._alarm.ring_at(opens_at)
                break
            most = min(self._max_request_size, line.frames.most(now))
            if line.has_room_for_two():
                most = min(most, first_share(ready))
            largest, least_whole = NO_LIMIT, LEAST_WHOLE
            if line.limit.slow or line.frames.suspects:
                largest, least_whole = line.largest_batch(now), line.least_whole(now)
            drained = drain(
                ready,
                self._accumulator,
                now,
                most,
                keep_order=self._keep_order,
                thread_bytes=self._thread_bytes,
                timeout=self._timeout,
                line=line.limit,
                cut=self._cut,
                largest=largest,
                least_whole=least_whole,
            )
            if not drained.taken:
                if drained.stopped:
                    self._alarm.ring()
                elif line.limit.large_at > now:
                    self._alarm.ring_at(line.limit.large_at)
                break
            self._exchange.send(link, drained.taken, now)
            if self._lot.memory.records:
                self._alarm.ring()  # a closed batch takes less than it was charged
            if self.sending.over():  # other tasks have a turn first
                if ready:
                    self._alarm.ring()
                break
        self._note_link(node, link, now)

    def _look_for_leaders(self, node: int) -> None:
        """Requests the metadata that the batches for this node wait for."""
        topics: set[str] = set()
        if node == NO_LEADER:
            for queue in self._schedule.ready.of(node):
                topics.add(queue.topic)
                if len(topics) > MOST_TOPICS:
                    break
        if 0 < len(topics) <= MOST_TOPICS:
            for topic in topics:
                self._client.request_update(topic)
        else:
            self._client.request_update()

    def _note_link(self, node: int, link: BrokerLink | None, now: float) -> None:
        """Records the node's state for the ledgers of time-outs."""
        if link is None:
            reason = Reason.NO_LEADER if node == NO_LEADER else Reason.LEADER_UNKNOWN
        elif not link.can_send(now):
            reason = link_reason(link, now) or READY
        else:
            line = self._lines.of(node)
            full = line.timely.is_full(link.in_flight()) or line.window.opens_at() > now
            reason = Reason.CONNECTION_WINDOW if full else READY
        self._history.node_is(node, now, reason)

    def _note_latency(self, node: int, now: float, *, can_send: bool) -> None:
        if self._latencies is not None:
            self._latencies.looked_at(node, now, can_send=can_send)
