"""Completes, retries, fails, expires or aborts batches, and frees their memory.

Decides nothing by itself (``completion`` and ``sequences`` do); no asyncio.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Final, final

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import DeliveryError, KafkaError, Outcome, TimeoutException, error_class, error_for, with_advice
from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics import ProducerMetrics
from aioproducer.producer.accumulator.incomplete_batches import IncompleteBatches
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.batches.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.producer.batches.split import Cut, cuts, target_size
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.diagnosis.ledger import Ledger, in_words
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.diagnosis.wording import counted, duration
from aioproducer.producer.exchange.completion import (
    APPENDED,
    MAYBE_APPENDED,
    SEQUENCE_ERRORS,
    SUCCEED,
    SUCCEED_DUPLICATE,
    Action,
    decide,
)
from aioproducer.producer.exchange.sealer import Sealer
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.scheduling.drain import Drained
from aioproducer.producer.scheduling.wait_history import WaitHistory
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.timing.backoff import ExponentialBackoff
from aioproducer.timing.time_slice import TimeSlice

log = logging.getLogger(__name__)

MOST_WHOLE: Final = 10
"""Attempts after which a batch that its leader does not answer is split although nothing tells whether the log has
it."""

_REFUSED: Final = (
    "is too large for the broker ({}); it is sent again in parts, as others will be: "
    "raise the topic's max.message.bytes"
)
_UNANSWERED: Final = (
    "is larger than any request that its leader answers now; it is sent again in parts, as others will be: raise "
    "request.timeout.ms, or the broker's socket.request.max.bytes"
)


@final
class NextSteps:
    """What follows from an answer, and happens elsewhere."""

    def __init__(
        self,
        *,
        again: Callable[[PartitionQueue, float, float], object],
        ask: Callable[[PartitionQueue, ProducerBatch], object],
        compress: Callable[[PartitionQueue, ProducerBatch], object],
        decompress: Callable[[PartitionQueue, ProducerBatch, Callable[[ProducerBatch, bytes], object]], bool],
        in_slices: Callable[[PartitionQueue, ProducerBatch, Callable[[], bool]], object],
        failed: Callable[[KafkaError], object],
    ) -> None:
        self.again = again
        """``again(queue, when, now)``: the queue may have batches to send at ``when``, a retry or batches that
        another's end unblocks."""
        self.ask = ask
        """``ask(queue, batch)`` finds out from the leader whether the log has the batch, which :meth:`found`
        receives."""
        self.compress = compress
        """``compress(queue, batch)``: a new batch is too large to compress here."""
        self.decompress = decompress
        """``decompress(queue, batch, then)``: a batch to split is too large to decompress here; ``then(batch,
        records)`` follows unless the batch ends before. False if that is not possible."""
        self.in_slices = in_slices
        """``in_slices(queue, batch, step)`` calls ``step`` until it returns True, or the batch ends: an answer may
        refuse hundreds of batches, each of which takes a while to split."""
        self.failed = failed
        """``failed(error)``: a batch has failed; called before its records end."""


@final
class GivingUp:
    """Why batches are given up, and which of them are left."""

    def __init__(self, waiting: KafkaError, count: int, now: float, *, aborted: bool) -> None:
        self.waiting = waiting
        """Of those that are not under way."""
        self.began = now
        self.aborted = aborted
        """These are aborted, as those under way always are."""
        self.under_way: KafkaError | None = None
        """Of those that are, or were when it began; None if they go on."""
        self.count = count
        """So many batches there had been."""
        self.passed_over: ProducerBatch | None = None
        """The newest batch under way that is left alone."""


class BatchCompleter:
    """Keeps every batch from its first record on, and ends it."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: RecordAccumulator,
        incomplete: IncompleteBatches,
        metrics: ProducerMetrics,
        failures: FailureLog,
        random: Random,
        sealer: Sealer,
        history: WaitHistory,
        steps: NextSteps,
    ) -> None:
        self._config = config
        self._accumulator = accumulator
        self._metrics = metrics
        self._backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random)
        self._again = steps.again
        self._ask = steps.ask
        self._compress = steps.compress
        self._decompress = steps.decompress
        self._in_slices = steps.in_slices
        self._on_failed = steps.failed
        self._failures = failures
        self._history = history
        self._sealer = sealer
        self._split_topics: set[str] = set()
        self._timeout = config.delivery_timeout_ms / 1000
        self._arrival = config.request_timeout_ms / 1000
        """Seconds in which brokers handle requests received over a connection that has ended."""
        self._slice = TimeSlice(accumulator.loop)
        self._passed_over: ProducerBatch | None = None
        """The newest late batch that has been left alone, if one turn was not enough for all that are late."""
        self.giving_up: GivingUp | None = None
        """While batches are given up in turns: until the last of them is, nothing may be drained."""
        self.incomplete = incomplete
        """In the order of creation, and so of expiry."""

    def ended(
        self,
        one: Drained,
        code: ErrorCode,
        message: str,
        now: float,
        *,
        base_offset: int = -1,
        append_time: int = -1,
        refused: Mapping[int, str] | None = None,
    ) -> None:
        """An attempt to send the batch has ended with this code; ``refused``: the broker's words on single records."""
        queue, batch = one.queue, one.batch
        if code in MAYBE_APPENDED or code in APPENDED:
            batch.maybe_appended = True  # first of all: if a bug ends it now, its outcome must not be NOT_SENT
        if code == ErrorCode.NETWORK_EXCEPTION:
            batch.unanswered += 1
            batch.arrives_until = now + self._arrival
            if queue.sequences is not None:
                queue.sequences.unanswered()
                self._again(queue, batch.arrives_until, now)  # a batch of old records may wait for that
        batch.in_flight = False
        queue.in_flight -= 1
        sequences = queue.sequences
        stamped = sequences if batch.has_sequence() else None
        if batch.result.done():
            # It expired or was aborted while under way. Only now are its bytes no longer read (KAFKA-19012).
            if code in APPENDED:
                log.info("%r was appended after it had been given up", batch)
                if stamped is not None:
                    stamped.resolve(batch)
            elif stamped is not None:
                self._abandon(queue, stamped, batch)
            self._release(batch)
            self._again(queue, now, now)
            return
        expired = batch.created + self._timeout <= now
        parts = cuts(batch, refused) if refused else []
        action = decide(
            code,
            batch,
            sequences,
            now,
            retries=self._config.retries,
            expired=expired,
            separable=bool(parts),
        )
        if action is SUCCEED or action is SUCCEED_DUPLICATE:
            known = action is SUCCEED
            if batch.attempts > 1 and append_time == batch.max_timestamp:
                append_time = -1  # a broker that recognised the retry answers with the batch's own latest timestamp
            if stamped is not None:
                stamped.append_time = append_time >= 0
                if stamped.unresolved[0] is not batch:
                    for earlier in stamped.shown_by(batch):
                        self._is_in_log(queue, stamped, earlier, now)
                stamped.resolve(batch)
            self._succeed(batch, base_offset if known else -1, append_time if known else -1, now)
        elif action is Action.FAIL:
            if stamped is not None:
                self._abandon(queue, stamped, batch)
            error: KafkaError = self._error(queue, batch, code, message, now)
            if refused:
                error.refused_records = refused
            ledger = self._attempt_ended(queue, batch, code, now)
            if isinstance(error, TimeoutException):
                error.ledger = ledger.entries()
            if expired and error.retriable:
                batch.last_error = code.name
                late = self._too_late(queue, batch, message, ledger)
                late.__cause__ = error
                error = late
            self._fail(queue, batch, error)
        elif action is Action.SPLIT:
            self._log_split(queue, batch, _REFUSED.format(message or "no reason given"))
            self._split(queue, batch, code, now, target_size(batch, self._sealer.limit_after(batch, now)), [])
        elif action is Action.SEPARATE:
            log.info("%r: %s; the accepted records are sent again without the others", batch, message)
            self._split(queue, batch, code, now, NO_LIMIT, parts)
        else:
            if action is Action.RESTAMP and sequences is not None:
                log.info("%r: %s; it is sent again under the producer's next epoch", batch, code.name)
                self._unstamp(queue, sequences, batch)
            if stamped is not None:
                stamped.interrupted()
            if code in SEQUENCE_ERRORS:
                batch.excused += 1
            self._retry(queue, batch, code, now)
            if action is Action.WAIT and sequences is not None:
                self._wait(queue, batch, sequences, now)
            if action is Action.ASK:
                batch.asked_about = True
                self._ask(queue, batch)
            return
        self._again(queue, now, now)

    def _succeed(self, batch: ProducerBatch, base_offset: int, append_time: int, now: float) -> None:
        """The log has the batch; offset and time are -1 if unknown."""
        self._metrics.batch_delivered(batch.count, batch.created, now)
        self._accumulator.limits.taken(batch.result.topic, BATCH_OVERHEAD + len(batch.body))
        try:
            self._release(batch)
        finally:
            batch.succeed(base_offset, append_time)
            self.incomplete.remove(batch)  # not before: if a bug interrupts this, abort ends the batch

    def _retry(self, queue: PartitionQueue, batch: ProducerBatch, code: ErrorCode, now: float) -> None:
        self._attempt_ended(queue, batch, code, now)
        batch.last_error = code.name
        self._metrics.records_retried(queue.topic, batch.count, now)
        wait = self._backoff.wait(batch.attempts)
        batch.retry_at = now + wait
        log.debug("%r: %s, attempt %d; again in %.0f ms", batch, code.name, batch.attempts, wait * 1000)
        queue.insert_retry(batch)
        self._again(queue, batch.retry_at, now)

    def _wait(self, queue: PartitionQueue, batch: ProducerBatch, sequences: PartitionSequences, now: float) -> None:
        """Sends the batch again when no attempt of it, or of an earlier one, can arrive any more."""
        batch.retry_at = sequences.arrives_until(batch)
        log.info("%r: an earlier attempt may still arrive; it is sent again in %.1f s", batch, batch.retry_at - now)
        self._again(queue, batch.retry_at, now)

    def found(self, queue: PartitionQueue, batch: ProducerBatch, in_log: bool | None) -> None:
        """The leader's answer whether the log has the batch; None if it does not know."""
        now = self._accumulator.loop.time()
        sequences = queue.sequences
        if batch.result.done() or sequences is None:
            return
        too_large = batch.too_large
        batch.asked_about = batch.too_large = False
        batch.unanswered = 0
        if in_log and batch.has_sequence() and sequences.may_be_left_out(batch):
            in_log = None
        has_time = now - batch.created < self._timeout / 2
        if not batch.has_sequence() or batch.log != sequences.log:
            pass  # there is another log now: the batch is sent to that one
        elif too_large and batch.attempts < MOST_WHOLE and (in_log is None or (in_log and has_time)):
            pass  # it is sent again as it is: if the log has it, the answer has its offset
        elif too_large and not in_log:
            self._log_split(queue, batch, _UNANSWERED)
            self._shrink(queue, batch)
        elif not in_log and sequences.may_still_arrive(batch, now):
            self._wait(queue, batch, sequences, now)
        elif in_log is None and sequences.set_aside(batch):
            log.info("%r: the answer to the next batch will show whether it is in the log", batch)
            queue.put_in_order()
        elif in_log is None or (not in_log and sequences.transactional):
            queue.batches.remove(batch)
            self._abandon(queue, sequences, batch)
            self._fail(queue, batch, self._error(queue, batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "", now))
        elif in_log:
            for earlier in sequences.shown_by(batch):
                self._is_in_log(queue, sequences, earlier, now)
            self._is_in_log(queue, sequences, batch, now)
        else:
            log.info("%r is not in the log; it is sent again under the producer's next epoch", batch)
            self._unstamp(queue, sequences, batch, in_known_log=True)
        self._again(queue, now, now)

    def _is_in_log(
        self, queue: PartitionQueue, sequences: PartitionSequences, batch: ProducerBatch, now: float
    ) -> None:
        log.info("%r is in the log", batch)
        queue.batches.remove(batch)
        sequences.resolve(batch)
        self._succeed(batch, -1, -1, now)

    def _abandon(self, queue: PartitionQueue, sequences: PartitionSequences, batch: ProducerBatch) -> None:
        sequences.abandon(batch)
        if sequences.put_back():
            queue.put_in_order()

    def _unstamp(
        self, queue: PartitionQueue, sequences: PartitionSequences, batch: ProducerBatch, *, in_known_log: bool = False
    ) -> None:
        """The batch and those behind it lose their stamps, and the queue is reordered."""
        sequences.unstamp(batch, in_known_log=in_known_log)
        queue.put_in_order()

    def _split(
        self, queue: PartitionQueue, batch: ProducerBatch, code: ErrorCode, now: float, target: int, parts: list[int]
    ) -> None:
        """The batch keeps its place in line until it is decompressed and smaller ones replace it (``split``)."""
        self._attempt_ended(queue, batch, code, now)
        batch.last_error = code.name
        sequences = queue.sequences
        if sequences is not None and batch.has_sequence() and sequences.is_void(batch):
            self._unstamp(queue, sequences, batch)
        queue.insert_retry(batch)
        self._cut(queue, batch, target, parts)

    def cut_to_fit(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Splits the head of a queue, which is too large for its topic or its node (``drain``). One that was sent is
        split once its leader has said that its log does not have it."""
        if batch.unanswered == 0:
            self._shrink(queue, batch)
        elif batch.has_sequence():
            batch.asked_about = batch.too_large = True
            self._ask(queue, batch)
        else:
            self._log_split(queue, batch, _UNANSWERED)
            self._shrink(queue, batch)

    def _shrink(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self._cut(queue, batch, target_size(batch, self._accumulator.fitting(queue, batch)), [])

    def _cut(self, queue: PartitionQueue, batch: ProducerBatch, target: int, parts: list[int]) -> None:
        then = partial(self._cut_up, queue, target, parts)
        if batch.size() < self._sealer.thread_bytes or not self._decompress(queue, batch, then):
            self._cut_in_slices(queue, batch, Cut(batch, partial(self._sealer.records_of, batch), target, parts))

    def _cut_up(
        self, queue: PartitionQueue, target: int, parts: list[int], batch: ProducerBatch, records: bytes
    ) -> None:
        """A thread has decompressed the batch."""
        self._cut_in_slices(queue, batch, Cut(batch, lambda: records, target, parts))

    def _cut_in_slices(self, queue: PartitionQueue, batch: ProducerBatch, cut: Cut) -> None:
        self._in_slices(queue, batch, partial(self._step, queue, batch, cut))

    def _step(self, queue: PartitionQueue, batch: ProducerBatch, cut: Cut) -> bool:
        """Whether it was the last one, and the parts are in the batch's place."""
        if not cut.step():
            return False
        self._replace(queue, batch, cut.children())
        return True

    def _replace(self, queue: PartitionQueue, batch: ProducerBatch, children: list[ProducerBatch]) -> None:
        """Replaces a batch in line."""
        sequences = queue.sequences
        if sequences is not None and batch.has_sequence():
            sequences.split(batch, children)
        ledger = batch.ledger
        self._release(batch)
        for child in children:
            self._accumulator.trim(child)
            if child.size() >= self._sealer.thread_bytes:
                self._compress(queue, child)
            child.last_error = batch.last_error
            child.ledger = None if ledger is None else ledger.copy()
        queue.batches.remove(batch)
        for child in reversed(children):
            queue.insert_retry(child)
        self.incomplete.replace(batch, children)
        batch.result.forward([(int(child.first - batch.first), child.result, 0) for child in children])
        self._metrics.batch_split(self._accumulator.loop.time())

    def _log_split(self, queue: PartitionQueue, batch: ProducerBatch, why: str) -> None:
        level = logging.DEBUG if queue.topic in self._split_topics else logging.WARNING
        self._split_topics.add(queue.topic)
        log.log(
            level,
            "%s-%d: a batch of %d records and %d bytes %s, or lower batch.max.size",
            queue.topic,
            queue.partition,
            batch.count,
            len(batch.body) + BATCH_OVERHEAD,
            why,
        )

    def next_expiry(self) -> float | None:
        """When the delivery.timeout.ms of the oldest batch is over."""
        oldest = self.incomplete.oldest
        return None if oldest is None else oldest.created + self._timeout

    def expire(
        self,
        due: float,
        now: float,
        is_heard: Callable[[ProducerBatch, float, float], bool],
        why_waiting: Callable[[PartitionQueue, ProducerBatch], str],
    ) -> bool:
        """Fails the batches whose delivery.timeout.ms was over by ``due``, wherever they are; oldest first, for a turn.

        Those whose answers may have come, ``is_heard(batch, when it was over, now)``, are passed over. Returns whether
        one turn was not enough; then the next call continues.
        """
        count = self.incomplete.count
        self._slice.begin()
        while (batch := self.incomplete.oldest_of_first(count, self._passed_over)) is not None:
            over = batch.created + self._timeout
            if over > due:
                break
            if is_heard(batch, over, now):
                self._passed_over = batch
            else:
                self._expire(batch, now, why_waiting)
            if self._slice.over():
                return True
        self._passed_over = None
        return False

    def _expire(
        self, batch: ProducerBatch, now: float, why_waiting: Callable[[PartitionQueue, ProducerBatch], str]
    ) -> None:
        queue = self.incomplete.queue_of(batch)
        if batch.in_flight:
            ledger = self._waited(queue, batch, batch.sent_at)
            ledger.book(now, Reason.IN_FLIGHT.value)
        else:
            ledger = self._waited(queue, batch, now)
        error = self._too_late(queue, batch, why_waiting(queue, batch), ledger)
        self._give_up(queue, batch, error)
        self._again(queue, now, now)

    def _waited(self, queue: PartitionQueue, batch: ProducerBatch, until: float) -> Ledger:
        """Books the reasons for the batch's wait since its last attempt, or since its first record."""
        ledger = batch.ledger
        if ledger is None:
            ledger = batch.ledger = Ledger(batch.created)
            if batch.ready_at > batch.created:
                ledger.book(min(batch.ready_at, until), Reason.LINGER.value)
        elif batch.retry_at > ledger.booked_until:
            ledger.book(min(batch.retry_at, until), batch.last_error, times=0)
        self._history.spend_in_queue(ledger, queue, until, batch.last_error)
        return ledger

    def _attempt_ended(self, queue: PartitionQueue, batch: ProducerBatch, code: ErrorCode, now: float) -> Ledger:
        ledger = self._waited(queue, batch, batch.sent_at)
        ledger.book(now, code.name)
        return ledger

    def _too_late(self, queue: PartitionQueue, batch: ProducerBatch, why: str, ledger: Ledger) -> TimeoutException:
        tries = counted(batch.attempts, "attempt")
        last = ErrorCode.__members__.get(batch.last_error)
        if batch.last_error:
            tries += f", the last one ended with {batch.last_error}"
        entries = ledger.entries()
        sentences = [in_words(entries), tries, why, "" if last is None else error_class(last).advice]
        error = TimeoutException(
            f"not delivered to {queue.topic}-{queue.partition} within "
            f"delivery.timeout.ms={self._config.delivery_timeout_ms}: {'; '.join(filter(None, sentences))}"
        )
        error.ledger = entries
        return error

    def give_up_waiting(self, error: KafkaError) -> None:
        """Has the batches fail that are not under way, oldest first, with ``give_up_more``. Until then nothing may be
        drained, and no record may be added to them."""
        _ = self._begin_to_give_up(error, aborted=False)

    def give_up_all(self, error: KafkaError) -> None:
        """Has all batches fail in the same way. Those that an earlier ``give_up_waiting`` has left fail with its
        error."""
        self._begin_to_give_up(error, aborted=True).under_way = error

    def _begin_to_give_up(self, error: KafkaError, *, aborted: bool) -> GivingUp:
        """The first call counts."""
        if self.giving_up is None:
            now = self._accumulator.loop.time()
            self.giving_up = GivingUp(error, self.incomplete.count, now, aborted=aborted)
        self.giving_up.passed_over = None
        return self.giving_up

    def give_up_more(self) -> bool:
        """Fails some of these batches, for a turn of the loop. Returns whether some are left."""
        if (what := self.giving_up) is None:
            return False
        now = self._accumulator.loop.time()
        self._slice.begin()
        while (batch := self.incomplete.oldest_of_first(what.count, what.passed_over)) is not None:
            under_way = batch.in_flight or (batch.ledger is not None and batch.ledger.booked_until >= what.began)
            error = what.under_way if under_way else what.waiting
            if error is None:
                what.passed_over = batch
                continue
            queue = self.incomplete.queue_of(batch)
            self._give_up(queue, batch, error, aborted=under_way or what.aborted)
            self._again(queue, now, now)
            if self._slice.over():
                return True
        self.giving_up = None
        return False

    def abort(self, error: KafkaError) -> None:
        """Ends everything that has not ended; nothing is drained after this.

        It also runs after bugs, so it relies only on the batches themselves.
        """
        self.giving_up = None
        while (batch := self.incomplete.oldest) is not None:
            queue = self.incomplete.queue_of(batch)
            self.incomplete.remove(batch)
            batch.maybe_appended |= batch.in_flight
            queue.open = None
            queue.batches.clear()
            try:
                self._end(queue, batch, error, aborted=True)
            except Exception:
                log.exception("unforeseen error at the end of %r", batch)
            self._on_failed(error)

    def _give_up(
        self, queue: PartitionQueue, batch: ProducerBatch, error: KafkaError, *, aborted: bool = False
    ) -> None:
        sequences = queue.sequences
        if batch.in_flight:
            batch.maybe_appended = True
            if sequences is not None:
                sequences.break_off()
        else:
            if queue.open is batch:
                self._accumulator.take_open(queue)
            else:
                queue.batches.remove(batch)
            if sequences is not None and batch.has_sequence():
                self._abandon(queue, sequences, batch)
        self._fail(queue, batch, error, aborted=aborted)

    def _fail(self, queue: PartitionQueue, batch: ProducerBatch, error: KafkaError, *, aborted: bool = False) -> None:
        self._end(queue, batch, error, aborted=aborted)
        self.incomplete.remove(batch)
        self._on_failed(error)  # not before: the callback may end all batches

    def _end(self, queue: PartitionQueue, batch: ProducerBatch, error: KafkaError, *, aborted: bool) -> None:
        outcome = Outcome.UNKNOWN if batch.maybe_appended or batch.maybe_before else Outcome.NOT_SENT
        ended = DeliveryError.of(error, outcome, (queue.topic, queue.partition))
        try:
            now = self._accumulator.loop.time()
            self._metrics.records_failed(queue.topic, batch.count, now)
            if (unobserved := batch.result.unobserved(batch.count)) > 0:
                self._failures.failed(queue.topic, queue.partition, unobserved, ended, now)
            if not batch.in_flight:  # otherwise its memory is freed when its request has ended
                self._release(batch)
        finally:
            batch.result.fail(ended, aborted)

    def _error(
        self, queue: PartitionQueue, batch: ProducerBatch, code: ErrorCode, message: str, now: float
    ) -> KafkaError:
        return error_for(
            code,
            f"{counted(batch.count, 'record')} for {queue.topic}-{queue.partition}, sent to node {batch.sent_to} "
            f"(attempt {batch.attempts}, after {duration(now - batch.created)}): {with_advice(message, code)}",
        )

    def _release(self, batch: ProducerBatch) -> None:
        allocated, batch.allocated = batch.allocated, 0
        self._accumulator.pool.deallocate(allocated)
        batch.release()
