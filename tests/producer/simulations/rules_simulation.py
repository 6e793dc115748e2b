"""Every rule of the producer together, over some partitions and two nodes, with a clock that is moved by hand.

What the Sender does with sockets and tasks is done here by calls: ``turn`` is its turn of the loop; ``answer`` and
``disconnect`` are what comes from the network.
"""

from __future__ import annotations

import math
from collections import deque
from random import Random
from typing import Any
from uuid import UUID

from aioproducer.configs.producer_config import producer_config
from aioproducer.errors import KafkaError, Outcome
from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics import ProducerMetrics
from aioproducer.net.addresses import Address
from aioproducer.net.metadata.cluster import Cluster, Node, Partitions, TopicMetadata
from aioproducer.producer.accumulator.incomplete_batches import IncompleteBatches
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.exchange.batch_completer import BatchCompleter, NextSteps
from aioproducer.producer.exchange.sealer import Sealer
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch
from aioproducer.producer.idempotence.sequences import WINDOW
from aioproducer.producer.scheduling.drain import Drained, drain
from aioproducer.producer.scheduling.pipeline import Pipeline
from aioproducer.producer.scheduling.readiness import why_waiting
from aioproducer.producer.scheduling.schedule import Schedule
from aioproducer.producer.scheduling.topic_directory import TopicDirectory
from aioproducer.producer.scheduling.wait_history import WaitHistory
from aioproducer.producer.sender.log_inquiry import is_in_log
from aioproducer.producer.windows.in_flight_windows import InFlightWindows
from aioproducer.records.compression import CompressionType
from aioproducer.timing.loop_clock import LoopClock
from aioproducer.types import PartitionInfo
from tests.support.exhaust import exhaust
from tests.support.splitting import at_once

from . import broker_model
from .broker_model import states_of
from .standing_loop import Accumulation, make_ids, make_line
from .window_model import WindowModel

NODES = (1, 2)
REMEMBERED = {1: 20, 2: WINDOW}
"""Batches of a producer that each node remembers at first, and announces: the second is a broker before KIP-1269."""
WINDOWS = (WINDOW, 8, 20)
"""What they may be told to remember later."""

TOPICS = {"t": 3, "u": 1}
MAX_REQUEST_SIZE = 2500
Place = tuple[str, int]


class RulesSimulation(Accumulation):
    """A producer, its requests under way by node, and the logs."""

    def __init__(
        self, *, linger: float, max_in_flight: int, idempotent: bool, auto: bool = False, memory: int = 6000
    ) -> None:
        super().__init__(memory=memory, batch_size=1000, max_request_size=MAX_REQUEST_SIZE)
        self.idempotent = idempotent
        self.max_in_flight = max_in_flight
        self.keep_order = max_in_flight == 1
        self.woken = False
        self.wake_times: list[float] = []
        self.linger = linger
        self.pipeline = Pipeline(linger, max_in_flight, 1000) if auto else None
        tick = LoopClock(self.loop).tick
        self.schedule = Schedule(
            linger, wake=self._wake, wake_at=self.wake_times.append, tick=tick, pipeline=self.pipeline
        )
        self.ids = make_ids()
        self.ids.current = ProducerIdAndEpoch(1, 0)
        self.windows = InFlightWindows()
        self.directory = TopicDirectory(
            self.accumulator.topics,
            self.partitioning,
            self.schedule.ready,
            self.windows,
            self.ids if idempotent else None,
        )
        self.sealer = Sealer(CompressionType.NONE, None, self.accumulator)
        self.questions: list[tuple[PartitionQueue, ProducerBatch]] = []
        """Batches of which the leader is asked whether they are in the log."""
        self.completer = BatchCompleter(
            producer_config({"bootstrap.servers": "b:1", "enable.idempotence": idempotent}),
            self.accumulator,
            IncompleteBatches(),
            ProducerMetrics(),
            FailureLog(),
            Random(0),
            self.sealer,
            WaitHistory(),
            NextSteps(
                again=self.schedule.again,
                ask=lambda queue, batch: self.questions.append((queue, batch)),
                compress=lambda queue, batch: None,  # nothing here is too large to be compressed when it is drained
                decompress=lambda queue, batch, then: False,
                in_slices=at_once,
                failed=self._batch_failed,
            ),
        )
        self.leaders: dict[Place, tuple[int, int]] = {
            (topic, number): (NODES[number % 2], 0)
            for topic, partitions in TOPICS.items()
            for number in range(partitions)
        }
        self.logs: dict[Place, broker_model.Partition] = {place: broker_model.Partition() for place in self.leaders}
        self.deliveries: dict[Place, dict[bytes, Any]] = {place: {} for place in self.leaders}
        self.models = {
            place: WindowModel(
                self.logs[place].log, self.deliveries[place], lambda: self.loop.now, self.completer._arrival
            )
            for place in self.leaders
        }
        self.stamped: dict[ProducerBatch, broker_model.Request] = {}
        self.ids_of_topics = {topic: UUID(int=number + 1) for number, topic in enumerate(TOPICS)}
        self.sent_to: dict[ProducerBatch, UUID] = {}
        """The id of the topic that each batch was sent to last."""
        self.handled: dict[ProducerBatch, tuple[ErrorCode, int]] = {}
        """Batches that a broker has handled, and what it will answer."""
        self.deleted: dict[Place, list[list[bytes]]] = {place: [] for place in self.leaders}
        """The logs that a place had before."""
        self.late: deque[tuple[int, Place, tuple[UUID, bytes], float]] = deque()
        """Requests whose connection has ended, and which the broker may still get to."""
        self.wire: dict[int, deque[list[Drained]]] = {node: deque() for node in NODES}
        self.up = dict.fromkeys(NODES, True)
        self.remembered = dict(REMEMBERED)
        self.slow = dict.fromkeys(NODES, False)
        """Nodes that answer no batch of several records."""
        self.waiting: deque[tuple[Place, bytes]] = deque()
        """Records for which there was no memory."""
        self.count = 0
        self.drains = 0
        self.flushes = 0
        self.follow()

    def _wake(self) -> None:
        self.woken = True

    def queues(self) -> list[PartitionQueue]:
        return [queue for topic in self.accumulator.topics.values() for queue in topic.queues]

    # What users do

    def send(self, place: Place, size: int) -> None:
        """The number of a record is its value, so that order shows."""
        self.count += 1
        value = b"%08d" % self.count + bytes(size)
        if self.waiting or not self._append(place, value):
            self.waiting.append((place, value))
            self.woken = True

    def _append(self, place: Place, value: bytes) -> bool:
        delivery = self.append(place[0], value, partition=place[1])
        if delivery is not None:
            self.deliveries[place][value[:8]] = delivery
        return delivery is not None

    def flush(self) -> None:
        self.schedule.flush_begun()
        self.flushes += 1

    def end_flush(self) -> None:
        self.schedule.flush_ended()
        self.flushes -= 1

    # As the Sender

    def _batch_failed(self, error: KafkaError) -> None:
        """A batch has failed: of no interest without a transaction."""

    def batch_opened(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self.completer.incomplete.add(batch, queue)
        self.schedule.opened(queue, batch)

    def batch_ready(self, queue: PartitionQueue) -> None:
        self.schedule.reached(queue, self.loop.now)

    def batch_full(self, queue: PartitionQueue) -> None:
        self.schedule.full(queue, self.loop.now)

    def turn(self) -> None:
        """A turn of the Sender."""
        self.woken = False
        now = self.loop.now
        self.schedule.take_due(now)
        self.completer.expire(now, now, lambda batch, over, now: False, lambda queue, batch: "because")
        while self.waiting and self._append(*self.waiting[0]):
            self.waiting.popleft()
        self.schedule.hurry(wanted=bool(self.waiting))
        for node in self.schedule.ready.nodes():
            while self._can_send(node) and (drained := self._drain(node)):
                self._send(node, drained)

    def _can_send(self, node: int) -> bool:
        return self.up.get(node, False) and len(self.wire[node]) < self.max_in_flight

    def _drain(self, node: int) -> list[Drained]:
        return drain(
            self.schedule.ready.of(node),
            self.accumulator,
            self.loop.now,
            MAX_REQUEST_SIZE,
            keep_order=self.keep_order,
            thread_bytes=NO_LIMIT,
            timeout=math.inf,
            line=make_line(),
            cut=self.completer.cut_to_fit,
            largest=1 if self.slow.get(node, False) else NO_LIMIT,
        ).taken

    def _send(self, node: int, drained: list[Drained]) -> None:
        size = 0
        for one in drained:
            queue, batch = one.queue, one.batch
            if batch.drain_order < 0:
                self.drains += 1
                batch.drain_order = self.drains
            again = batch.has_sequence()
            if queue.sequences is not None and again:
                queue.sequences.sent_again(batch, self.loop.now, 0)
            elif queue.sequences is not None:
                queue.sequences.stamp(batch, self.loop.now, 0)
            self.sealer.seal(batch)
            if queue.sequences is not None:
                request = broker_model.seen(batch.header + batch.body)
                assert not again or self.stamped.get(batch, request) == request, "what is sent again is the same"
                self.stamped[batch] = request
                self.models[queue.topic, queue.partition].sent(request)
                batch.log = queue.sequences.log
            self.sent_to[batch] = self.accumulator.topics[queue.topic].topic_id
            size += len(batch.header) + len(batch.body)
            batch.in_flight = True
            batch.attempts += 1
            batch.sent_at = self.loop.now
            batch.leader_epoch = queue.leader_epoch
            queue.in_flight += 1
        assert len(drained) == len({id(one.queue) for one in drained}), "a partition is in a request once"
        assert size <= MAX_REQUEST_SIZE or len(drained) == 1
        self.wire[node].append(drained)
        if self.pipeline is not None:
            self.pipeline.sent(node, sum(one.batch.count for one in drained), size, self.loop.now)

    # The brokers and the network

    def answer(self, node: int, refusals: list[ErrorCode]) -> None:
        """The oldest request is handled and answered; a partition with a refusal is not appended to."""
        drained = self.wire[node].popleft()
        self.slow[node] = False
        if self.pipeline is not None:
            self.pipeline.answered(node, self.loop.now - drained[0].batch.sent_at)
        refusals = [*refusals, *[ErrorCode.NONE] * len(drained)]
        for one, refused in zip(drained, refusals, strict=False):
            place = (one.queue.topic, one.queue.partition)
            handled = self.handled.pop(one.batch) if one.batch in self.handled else None
            code, offset = handled or self._produce(node, place, self._data(one), refused)
            self.models[place].announced(node, self.remembered[node])
            self.windows.announced(one.queue, node, self.remembered[node])
            self._ended(one, code, offset)
        self.woken = True

    def _ended(self, one: Drained, code: ErrorCode, offset: int = -1) -> None:
        if one.queue.sequences is not None:
            self.models[one.queue.topic, one.queue.partition].ended(self.stamped[one.batch], code)
        self.completer.ended(one, code, "", self.loop.now, base_offset=offset)

    def _data(self, one: Drained) -> tuple[UUID, bytes]:
        """What a broker sees of a batch."""
        return self.sent_to[one.batch], one.batch.header + one.batch.body

    def _produce(self, node: int, place: Place, sent: tuple[UUID, bytes], refused: ErrorCode) -> tuple[ErrorCode, int]:
        topic_id, data = sent
        if topic_id != self.ids_of_topics[place[0]]:
            return ErrorCode.UNKNOWN_TOPIC_ID, -1
        if self.leaders[place][0] != node:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        request = broker_model.seen(data)
        if refused is ErrorCode.NONE or request.values[0] in self.logs[place].log:
            return self.append_to_log(place, request, self.remembered[node])
        if refused is ErrorCode.REQUEST_TIMED_OUT:  # the replicas are late
            code, _ = self.append_to_log(place, request, self.remembered[node])
            return (refused if code is ErrorCode.NONE else code), -1
        return refused, -1

    def append_to_log(self, place: Place, request: broker_model.Request, remembered: int) -> tuple[ErrorCode, int]:
        return self.logs[place].produce(request, remembered)

    def answer_question(self, *, told: bool = True) -> None:
        """The leader says how far its log has come; or that it may not (``told``)."""
        queue, batch = self.questions.pop(0)
        log = self.logs[queue.topic, queue.partition]
        if told:
            self.models[queue.topic, queue.partition].described()
        self.completer.found(queue, batch, is_in_log(batch, states_of(log)) if told else None)
        self.woken = True

    def remember(self, node: int, batches: int) -> None:
        """The node's config is another one; what is too much is forgotten at once."""
        self.remembered[node] = batches
        for place, (leader, _) in self.leaders.items():
            if leader == node:
                self.logs[place].forget(batches)

    def arrive_late(self) -> None:
        """A broker gets to a request that nobody waits for any more."""
        node, place, data, until = self.late.popleft()
        if self.loop.now < until:
            self._produce(node, place, data, ErrorCode.NONE)

    def disconnect(self, node: int, handled: int, *, late: bool = False) -> None:
        """The connection ends; of the requests on it the first few were handled all the same, or will be.
        ``late``: because it answers none that is large."""
        for model in self.models.values():
            model.disconnected(node)
        self.windows.connection_lost(node)
        lost, self.wire[node] = self.wire[node], deque()
        self.slow[node] |= late
        for number, drained in enumerate(lost):
            for one in drained:
                place, data = (one.queue.topic, one.queue.partition), self._data(one)
                if one.batch in self.handled:
                    del self.handled[one.batch]
                elif number < handled:
                    self._produce(node, place, data, ErrorCode.NONE)
                elif self.idempotent:  # without, whatever comes late comes twice
                    self.late.append((node, place, data, self.loop.now + self.completer._arrival))
                self._ended(one, ErrorCode.NETWORK_EXCEPTION)
        self.woken = True

    def move(self, place: Place, leader: int, *, told: bool) -> None:
        """Another node leads; ``told``: the producer hears of it at once."""
        self.leaders[place] = (leader, self.leaders[place][1] + 1)
        if told:
            self.follow()

    def create_anew(self, topic: str, *, handled: int, told: bool) -> None:
        """The topic is deleted and another one of its name created.

        Of the requests on each connection the first few have been handled by then, and are not answered yet.
        """
        for node, requests in self.wire.items():
            for drained in list(requests)[:handled]:
                for one in drained:
                    if one.batch not in self.handled:
                        place = (one.queue.topic, one.queue.partition)
                        self.handled[one.batch] = self._produce(node, place, self._data(one), ErrorCode.NONE)
        self.ids_of_topics[topic] = UUID(int=max(one.int for one in self.ids_of_topics.values()) + 1)
        for place in self.logs:
            if place[0] == topic:
                self.deleted[place].append(self.logs[place].log)
                self.logs[place] = broker_model.Partition()
                self.leaders[place] = (self.leaders[place][0], 0)
        if told:
            self.follow()

    def may_forget_producers(self) -> bool:
        """Whether no attempt is under way, nor in a log whose producer waits for an answer.

        A broker that has forgotten would append it twice, which no producer can prevent.
        """
        waiting = [
            value for deliveries in self.deliveries.values() for value, end in deliveries.items() if not end.done()
        ]
        logged = {value for partition in self.logs.values() for value in partition.log}
        return not any(self.wire.values()) and not self.late and logged.isdisjoint(waiting)

    def forget_producers(self) -> None:
        """Brokers forget the producers that have not written for long (``producer.id.expiration.ms``)."""
        self.loop.now += 2 * self.ids.known_for
        for partition in self.logs.values():
            partition.entries.clear()

    def follow(self) -> None:
        """The producer gets metadata."""
        topics = {
            topic: TopicMetadata(
                topic,
                self.ids_of_topics[topic],
                Partitions.of(
                    PartitionInfo(topic, p, *self.leaders[topic, p], (1, 2), (1, 2), ()) for p in range(partitions)
                ),
            )
            for topic, partitions in TOPICS.items()
        }
        for place, model in self.models.items():
            model.led_by(*self.leaders[place])
            model.has_log(self.logs[place].log)
        nodes = {node: Node(node, Address("b", node)) for node in NODES}
        exhaust(self.directory.following(Cluster(nodes, topics), self.loop.now))
        self.woken = True

    # What must hold

    def check(self) -> None:
        """At any time."""
        under_way = [one for requests in self.wire.values() for drained in requests for one in drained]
        held = {*self.completer.incomplete, *(one.batch for one in under_way)}
        assert self.pool.total - self.pool.available == sum(batch.allocated for batch in held)
        for queue in self.queues():
            if queue.sequences is not None:
                unresolved = queue.sequences.unresolved
                assert unresolved == sorted(unresolved, key=lambda batch: (batch.drain_order, batch.first))
            waiting = [(batch.drain_order, batch.first) for batch in queue.batches if batch.has_sequence()]
            assert waiting == sorted(waiting), "what goes again goes in the order of its sequences"
            assert queue.in_flight == sum(one.queue is queue for one in under_way)
        for requests in self.wire.values():
            assert len(requests) <= self.max_in_flight
        for place, deliveries in self.deliveries.items():
            log = self.logs[place].log
            for value, delivery in deliveries.items():
                logs = [log, *self.deleted[place]]
                if delivery.done() and delivery.outcome is None:
                    offset = delivery.result().offset
                    # Of a batch that was found in the log nobody says where.
                    there = [value in log if offset < 0 else log[offset : offset + 1] == [value] for log in logs]
                    assert any(there)
                elif delivery.outcome is Outcome.NOT_SENT:
                    assert not any(value in log for log in logs)

    def check_nothing_forgotten(self) -> None:
        """After a turn: whatever could go out has gone, and for all else there is somebody or something that wakes."""
        now = self.loop.now
        upcoming = self.schedule.next()
        for queue in self.queues():
            reason = why_waiting(queue, now, keep_order=self.keep_order)
            if reason is None:
                assert queue in self.schedule.ready.of(queue.leader), f"{queue} could be sent, and nobody knows"
                assert not self._can_send(queue.leader), f"{queue} could be sent, and was not"
            elif reason is Reason.LINGER:
                assert upcoming is not None
                assert upcoming <= now or not (self.flushes or self.waiting)
                assert queue.open is not None
                assert upcoming <= queue.close_at <= round(queue.open.created + self.linger, 6)
            elif reason is Reason.BACKOFF:
                assert upcoming is not None
                assert upcoming <= queue.batches[0].retry_at

    def settle(self) -> None:
        """From now on all goes well: everything ends, and not because its time is over."""
        self.completer._timeout = 10.0**9
        self.up = dict.fromkeys(NODES, True)
        self.follow()
        for _ in range(30 * len(self.completer.incomplete) + 30 * len(self.waiting) + 30):
            if not (self.completer.incomplete or self.waiting or any(self.wire.values())):
                break
            self.loop.now += 2
            while self.questions:
                self.answer_question()
            self.turn()
            self.check_nothing_forgotten()
            for node in NODES:
                while self.wire[node]:
                    self.answer(node, [])
        assert not self.completer.incomplete, f"stuck: {list(self.completer.incomplete)}"
        assert not self.waiting

    def check_end(self) -> None:
        """When everything is over."""
        self.check()
        assert self.pool.available == self.pool.total
        for place, deliveries in self.deliveries.items():
            assert all(delivery.done() for delivery in deliveries.values())
            for log in (self.logs[place].log, *self.deleted[place]):
                if self.idempotent:
                    assert len(log) == len(set(log)), "something is in the log twice"
                    assert log == sorted(log), "the log is out of order"
