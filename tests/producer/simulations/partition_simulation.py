"""One partition, from ``append`` to the end of each batch: the producer's rules against the model of a broker.

Everything that can go wrong between the two is a call here; who calls them, and in which order, is the test's choice.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from aioproducer.configs.producer_config import producer_config
from aioproducer.errors import KafkaError, Outcome, TimeoutException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics import ProducerMetrics
from aioproducer.producer.accumulator.compression_ratio import CompressionRatioEstimator
from aioproducer.producer.accumulator.incomplete_batches import IncompleteBatches
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.exchange.batch_completer import BatchCompleter, NextSteps
from aioproducer.producer.exchange.sealer import Sealer
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.scheduling.deadlines import DeadlineHeap
from aioproducer.producer.scheduling.drain import Drained, drain
from aioproducer.producer.scheduling.readiness import ReadySet
from aioproducer.producer.scheduling.wait_history import WaitHistory
from aioproducer.producer.sender.log_inquiry import is_in_log
from aioproducer.records.compression import CompressionType
from aioproducer.records.record_batch import RecordBatch
from tests.support.splitting import at_once

from .broker_model import Partition, Request, states_of
from .standing_loop import Accumulation, make_ids, make_line


class Sent(NamedTuple):
    """A batch in a request: which it is, and what the broker sees of it."""

    drained: Drained
    request: Request


class Zombies(NamedTuple):
    """Requests of a connection that was lost."""

    requests: deque[Sent]
    until: float
    """Brokers process them before then, or never."""


class PartitionSimulation(Accumulation):
    """A producer with one partition, the requests under way, and a broker."""

    def __init__(
        self,
        *,
        window: int = 5,
        epoch: int = 0,
        first_sequence: int = 0,
        retries: int = 2**31 - 1,
        idempotent: bool = True,
        keep_order: bool = False,
        most_records: int = 10**6,
        codec: CompressionType = CompressionType.NONE,
        threads: bool = False,
    ) -> None:
        ratios = None if codec is CompressionType.NONE else CompressionRatioEstimator()
        super().__init__(memory=10**6, batch_size=1000, max_request_size=10**6, ratios=ratios)
        self.most_records = most_records
        """A batch of more than these is too large for the broker."""
        self.sealer = Sealer(codec, None, self.accumulator)
        if threads:
            self.sealer.thread_bytes = 0
        self.slow = False
        """No batch of several records is answered."""
        self.jobs: list[tuple[PartitionQueue, ProducerBatch, Callable[[ProducerBatch, bytes], object]]] = []
        """What worker threads decompress, and what follows."""
        self.window = window
        self.keep_order = keep_order
        self.ids = make_ids()
        self.ids.current = ProducerIdAndEpoch(1, epoch)
        self.sequences = PartitionSequences(self.ids, window)
        self.sequences.next_sequence = first_sequence
        (self.queue,) = self.add_topic("t", 1, sequences=(lambda: self.sequences) if idempotent else None)
        self.config = producer_config(
            {"bootstrap.servers": "b:1", "retries": retries, **({} if idempotent else {"enable.idempotence": False})}
        )
        self.metrics = ProducerMetrics()
        self.ready = ReadySet()
        self.timers: DeadlineHeap[PartitionQueue] = DeadlineHeap()
        self.failures = FailureLog()
        self.questions: list[tuple[PartitionQueue, ProducerBatch]] = []
        """Batches of which the broker is asked whether they are in the log."""
        self.completer = BatchCompleter(
            self.config,
            self.accumulator,
            IncompleteBatches(),
            self.metrics,
            self.failures,
            Random(0),
            self.sealer,
            WaitHistory(),
            NextSteps(
                again=self.again,
                ask=lambda queue, batch: self.questions.append((queue, batch)),
                compress=lambda queue, batch: None,  # nothing here is too large to be compressed when it is drained
                decompress=self.decompress,
                in_slices=at_once,
                failed=lambda error: None,
            ),
        )
        self.broker = Partition()
        self.wire: deque[Sent] = deque()
        """Requests the broker has not processed yet, in the order of their connection."""
        self.answers: deque[tuple[Sent, ErrorCode, int]] = deque()
        """What it has answered and the producer has not received."""
        self.zombies: list[Zombies] = []
        """By connection that was lost."""
        self.deliveries: dict[bytes, Any] = {}
        self.values: dict[ProducerBatch, tuple[bytes, ...]] = {}
        """Of each batch that was sent."""
        self.count = 0
        self.drains = 0
        self.sealed: dict[tuple[int, ...], bytes] = {}
        self.stamped: list[tuple[int, int, int, int]] = []
        self.told_late: set[ProducerBatch] = set()

    # The producer

    def batch_opened(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        super().batch_opened(queue, batch)
        self.completer.incomplete.add(batch, queue)

    def batch_ready(self, queue: PartitionQueue) -> None:
        super().batch_ready(queue)
        self.ready.add(queue)

    def batch_full(self, queue: PartitionQueue) -> None:
        queue.batches[-1].ready_at = self.loop.now
        self.ready.add(queue)

    def again(self, queue: PartitionQueue, when: float, now: float) -> None:
        if when > now:
            self.timers.push(when, queue)
        self.ready.add(queue)

    def decompress(
        self, queue: PartitionQueue, batch: ProducerBatch, then: Callable[[ProducerBatch, bytes], object]
    ) -> bool:
        batch.compressing = True
        self.jobs.append((queue, batch, then))
        return True

    def decompressed(self, number: int = 0) -> None:
        """A worker thread is done, as the Compressor is told."""
        queue, batch, then = self.jobs.pop(number)
        batch.compressing = False
        if not batch.result.done():
            then(batch, self.sealer.records_of(batch))
            self.ready.add(queue)

    def add_batch(self, records: int = 1) -> ProducerBatch:
        values = [b"%d" % (self.count + number) for number in range(1, records + 1)]
        self.count += records
        for value in values:
            self.deliveries[value] = self.append(value=value)
        self.accumulator.close_batch(self.queue)
        return self.opened[-1]

    def drain(self) -> int:
        """Sends what the rules let go, each batch in a request of its own; how many there were."""
        for queue in self.timers.pop_due(self.loop.now, 10**9):
            self.ready.add(queue)
        count = 0
        for node in self.ready.nodes():
            while drained := drain(
                self.ready.of(node),
                self.accumulator,
                self.loop.now,
                10**6,
                keep_order=self.keep_order,
                thread_bytes=NO_LIMIT,
                timeout=math.inf,
                line=make_line(),
                cut=self.completer.cut_to_fit,
                largest=1 if self.slow else NO_LIMIT,
            ).taken:
                (one,) = drained
                self._send(one)
                count += 1
        return count

    def _send(self, one: Drained) -> None:
        """As the Sender prepares a batch."""
        queue, batch = one.queue, one.batch
        if batch.drain_order < 0:
            self.drains += 1
            batch.drain_order = self.drains
        if queue.sequences is not None and batch.has_sequence():
            queue.sequences.sent_again(batch, self.loop.now, 0)
        elif queue.sequences is not None:
            queue.sequences.stamp(batch, self.loop.now, 0)
            self.stamped.append((batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.count))
        self.sealer.seal(batch)
        batch.in_flight = True
        batch.attempts += 1
        batch.sent_at = self.loop.now
        batch.sent_to = queue.leader
        queue.in_flight += 1
        data = batch.header + batch.body
        read = RecordBatch(data)
        read.verify()
        key = (batch.drain_order, batch.first, batch.count, read.producer_id, read.producer_epoch, read.base_sequence)
        assert self.sealed.setdefault(key, data) == data, "a retry is not byte-identical"
        values = tuple(record.value or b"" for record in read.records())
        self.values[batch] = values
        request = Request(read.producer_id, read.producer_epoch, read.base_sequence, values)
        self.wire.append(Sent(one, request))

    def receive(self) -> None:
        """The next answer arrives."""
        sent, code, offset = self.answers.popleft()
        self.slow = False
        self.completer.ended(sent.drained, code, "", self.loop.now, base_offset=offset)
        self._check_ledger(sent.drained.batch)

    def answer_question(self, *, told: bool = True) -> None:
        """The broker says how far the log has come; or that it may not (``told``)."""
        queue, batch = self.questions.pop(0)
        in_log = is_in_log(batch, states_of(self.broker)) if told else None
        if not batch.result.done() and batch.asked_about and in_log is not None:
            assert in_log == self.in_log(batch)
        self.completer.found(queue, batch, in_log)
        self._check_ledger(batch)

    def expire_oldest(self) -> None:
        """Time passes until the oldest batch has had its time."""
        due = self.completer.next_expiry()
        assert due is not None
        self.loop.now = max(self.loop.now, due)
        timeout = self.completer._timeout
        late = [batch for batch in self.completer.incomplete if batch.created + timeout <= self.loop.now]
        self.completer.expire(
            self.loop.now, self.loop.now, lambda batch, over, now: False, lambda queue, batch: "because"
        )
        assert late
        for batch in late:
            assert isinstance(batch.result.error, TimeoutException)
            self._check_ledger(batch)

    def _check_ledger(self, batch: ProducerBatch) -> None:
        """A batch that was too late just now knows what all its time was spent on."""
        error = batch.result.error
        if (
            not isinstance(error, TimeoutException)
            or "delivery.timeout.ms" not in str(error)
            or batch in self.told_late
        ):
            return
        self.told_late.add(batch)
        spent = sum(entry.seconds for entry in error.ledger)
        assert math.isclose(spent, self.loop.now - batch.created, abs_tol=1e-6), error.ledger
        assert all(entry.seconds >= 0 for entry in error.ledger)

    def grant_producer_id(self) -> None:
        """InitProducerId is answered."""
        assert self.ids.current is None
        self.ids.current = ProducerIdAndEpoch(self.stamped[-1][0] + 1, 0)
        self.ready.add(self.queue)

    # The broker and the network

    def process(self, *, refuse: ErrorCode = ErrorCode.NONE, then: ErrorCode = ErrorCode.NONE) -> None:
        """The broker processes the next request: refuses it, or appends it (if it may) and answers ``then``."""
        sent = self.wire.popleft()
        if len(sent.request.values) > self.most_records:
            refuse = ErrorCode.MESSAGE_TOO_LARGE
        if refuse is not ErrorCode.NONE:
            self.answers.append((sent, refuse, -1))
            return
        code, offset = self._produce(sent)
        if code is ErrorCode.NONE and then is not ErrorCode.NONE:
            code, offset = then, -1
        self.answers.append((sent, code, offset))

    def process_zombie(self, connection: int) -> None:
        """The broker processes a request late. A higher epoch of its producer id fences it off; another id does not."""
        zombies = self.zombies[connection]
        sent = zombies.requests.popleft()
        if self.loop.now < zombies.until or sent.request.producer_id == self.stamped[-1][0]:
            self._produce(sent)
        self.zombies = [one for one in self.zombies if one.requests]

    def _produce(self, sent: Sent) -> tuple[ErrorCode, int]:
        return self.broker.produce(sent.request)

    def disconnect(self, arriving: int, *, late: bool = False) -> None:
        """The connection is lost, with its answers; of its requests the first ``arriving`` may still be processed.
        ``late``: because it answers none that is large."""
        ended = [*(sent for sent, _, _ in self.answers), *self.wire]
        if zombies := list(self.wire)[:arriving]:
            until = self.loop.now + self.config.request_timeout_ms / 1000
            self.zombies.append(Zombies(deque(zombies), until))
        self.answers.clear()
        self.wire.clear()
        self.slow |= late
        for sent in ended:
            self.completer.ended(sent.drained, ErrorCode.NETWORK_EXCEPTION, "", self.loop.now)

    def restart(self, arriving: int) -> None:
        """The broker goes and comes back: its snapshot has the last batch of each producer."""
        if self.wire or self.answers:
            self.disconnect(arriving)
        self.broker.forget(1)

    def forget_producers(self) -> None:
        """The broker forgets all producers, which have been silent for long."""
        self.loop.now += 2 * self.ids.known_for
        self.broker.entries.clear()

    def give_up_waiting(self, error: KafkaError) -> None:
        """Everything that is not under way fails."""
        self.completer.give_up_waiting(error)
        while self.completer.give_up_more():
            pass

    def may_forget_producers(self) -> bool:
        """Whether the broker, having forgotten, would not append again what it has, nor what was given up long ago.

        That no producer can prevent. Nor does a broker forget a producer while an answer is on its way: that takes at
        most request.timeout.ms, much less than producer.id.expiration.ms.
        """
        under_way = self.wire or self.answers or self.zombies
        return not under_way and not any(map(self.in_log, self.completer.incomplete))

    def values_of(self, batch: ProducerBatch) -> tuple[bytes, ...]:
        """The records of a batch; of a part not sent itself, those it has of the batch that was; else none."""
        if batch in self.values or batch.drain_order < 0:
            return self.values.get(batch, ())
        whole, values = next(sent for sent in self.values.items() if sent[0].drain_order == batch.drain_order)
        first = batch.first - whole.first
        return values[first : first + batch.count]

    def in_log(self, batch: ProducerBatch) -> bool:
        return any(value in self.broker.log for value in self.values_of(batch)[:1])

    def round_trip(self) -> None:
        """Everything that may go out does, and all goes well."""
        self.drain()
        while self.wire:
            self.process()
        while self.answers:
            self.receive()

    # What must hold

    def settle(self) -> None:
        """From now on nothing goes wrong: everything ends, and not because its time is over."""
        self.completer._timeout = 10.0**9
        for _ in range(20 * len(self.completer.incomplete) + 20):
            if not self.completer.incomplete and not self.wire and not self.answers:
                break
            self.loop.now += 1.5
            if self.ids.current is None:
                self.grant_producer_id()
            while self.jobs:
                self.decompressed()
            self.accumulator.close_batch(self.queue)
            while self.questions:
                self.answer_question()
            self.round_trip()
        assert not self.completer.incomplete, f"stuck: {list(self.completer.incomplete)}"
        while self.zombies:
            self.process_zombie(0)

    def check(self) -> None:
        """At any time."""
        unresolved = self.sequences.unresolved
        assert len({batch.drain_order for batch in unresolved}) <= self.window  # the parts of a split one count as one
        assert sum(batch.in_flight for batch in unresolved) <= self.window
        assert unresolved == sorted(unresolved, key=lambda batch: (batch.drain_order, batch.first))
        created = [batch.created for batch in self.completer.incomplete]
        assert created == sorted(created)
        for before, after in zip(self.stamped, self.stamped[1:], strict=False):
            if before[:2] == after[:2]:
                assert after[2] == (before[2] + before[3]) % 2**31
            else:
                assert after[:2] > before[:2]
                assert after[2] == 0
        assert all(0 <= epoch < 2**15 and 0 <= sequence < 2**31 for _, epoch, sequence, _ in self.stamped)
        under_way = {sent.drained.batch for sent in self.wire} | {sent.drained.batch for sent, _, _ in self.answers}
        held = set(self.completer.incomplete) | under_way
        assert self.pool.total - self.pool.available == sum(batch.allocated for batch in held)
        for value, delivery in self.deliveries.items():
            if delivery.done() and delivery.outcome is None:
                offset = delivery.result().offset
                assert value in self.broker.log if offset < 0 else self.broker.log[offset] == value
            elif delivery.outcome is Outcome.NOT_SENT:
                assert value not in self.broker.log

    def check_metrics(self) -> None:
        """Each record that has ended is counted once; of those that came by ``add_batch``, if there are no others."""
        done = [delivery.outcome for delivery in self.deliveries.values() if delivery.done()]
        measured = self.metrics.snapshot(self.loop.now)
        assert measured["record-delivered-total"] == done.count(None)
        assert measured["record-error-total"] == len(done) - done.count(None)

    def check_end(self) -> None:
        """When everything is over."""
        self.check()
        log = self.broker.log
        assert all(delivery.done() for delivery in self.deliveries.values())
        assert len(log) == len(set(log)), "something is in the log twice"
        numbers = [int(value) for value in log]
        if len({producer_id for producer_id, _, _, _ in self.stamped}) > 1:
            # What was given up may still arrive under a producer id of before, and nobody can fence it off.
            numbers = [int(value) for value in log if self.deliveries[value].outcome is None]
        assert numbers == sorted(numbers), "the log is out of order"
        assert self.pool.available == self.pool.total
        assert self.queue.depth() == self.queue.in_flight == 0
        assert self.sequences.unresolved == []
