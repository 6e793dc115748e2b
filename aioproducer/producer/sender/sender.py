"""The Sender: one task that moves batches from the accumulator to the brokers and completes them.

It sleeps until a batch is ready, a deadline is due, an answer arrives or a link changes. Then it runs a ``SenderPass``.
This module has its life cycle, and its other services for the producer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from traceback import clear_frames
from typing import TYPE_CHECKING

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import IllegalStateException, KafkaError
from aioproducer.metrics import ProducerMetrics
from aioproducer.net.client import KafkaClient
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.delivery.wait_all import all_ended
from aioproducer.producer.diagnosis.explanation import Explanation
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.exchange.batch_completer import BatchCompleter
from aioproducer.producer.parking.enqueue_wait import notify_all_settled, notify_settled
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.scheduling.schedule import Schedule
from aioproducer.producer.scheduling.topic_directory import TopicDirectory
from aioproducer.producer.sender.alarm import Alarm
from aioproducer.producer.sender.compressor import Compressor
from aioproducer.producer.sender.metadata_waits import MetadataWaits
from aioproducer.producer.sender.obstacles import Situation, explain
from aioproducer.producer.sender.producer_id import ProducerIdSource
from aioproducer.producer.sender.sender_pass import SenderPass
from aioproducer.tasks.own_task import start_task
from aioproducer.tasks.supervisor import Supervisor
from aioproducer.timing.time_slice import TimeSlice
from aioproducer.types import PartitionInfo

if TYPE_CHECKING:
    from aioproducer.producer.transactions.transaction_manager import TransactionManager


@dataclass(frozen=True, slots=True)
class SenderParts:
    """What the Sender drives."""

    supervisor: Supervisor
    alarm: Alarm
    schedule: Schedule
    client: KafkaClient
    compressor: Compressor
    completer: BatchCompleter
    id_source: ProducerIdSource
    topics: TopicDirectory
    waits: MetadataWaits
    situation: Situation
    sender_pass: SenderPass


class Sender:
    """Drains, sends, completes. Times are the loop's, in seconds."""

    def __init__(
        self,
        config: ProducerConfig,
        lot: ParkingLot,
        metrics: ProducerMetrics,
        failures: FailureLog,
        parts: SenderParts,
        transactions: TransactionManager | None,
    ) -> None:
        self.parts = parts
        self.transactions = transactions
        self.fatal: KafkaError | None = None
        """Why this producer is unusable; None while it works."""
        self._waits_for_sockets = config.required_acks == 0
        self._lot = lot
        self._metrics = metrics
        self._failures = failures
        self._alarm = parts.alarm
        self._client = parts.client
        self._completer = parts.completer
        self._loop = asyncio.get_running_loop()
        self._notifying = TimeSlice(self._loop)
        self._stopped = False
        self._passed = asyncio.Event()
        """Wakes all tasks that wait for a pass."""

    def start(self) -> None:
        self._client.start()
        self.parts.supervisor.launch(self._run(), "aioproducer sender")
        if self.transactions is None:
            self._lot.open()
        self._alarm.ring()

    # Needed by a send beyond the accumulator

    def parked(self, topic: str) -> None:
        """A record waits in the parking lot."""
        self.parts.waits.parked(topic)
        self._alarm.ring()

    def known_partitions(self, topic: str) -> Sequence[PartitionInfo]:
        """The topic's partitions; none while they are unknown."""
        known = self._client.metadata.cluster.topics.get(topic)
        return self.parts.topics.partitions(topic) if known is None else known.partitions

    async def partitions_for(self, topic: str, least: int = 1) -> list[PartitionInfo]:
        """The topic's partitions, waiting at most max.block.ms for at least this many."""
        return await self.parts.waits.partitions_for(topic, least)

    def pending(self) -> int:
        """Batches that have not ended."""
        return len(self._completer.incomplete)

    def requests_in_flight(self) -> int:
        return self._client.requests_in_flight()

    def unanswered_since(self) -> float:
        """When the oldest request without an answer was sent; NaN if there is none."""
        return self._client.unanswered_since()

    def metadata_time(self) -> float:
        """When metadata last arrived; minus infinity before that."""
        return self._client.metadata.updated_at

    def unreachable_since(self) -> float:
        """When the client found that no broker can be reached; NaN while one can be, or before the first attempt."""
        return self._client.unreachable_since

    def topics_in_use(self) -> set[str]:
        """Topics with records that have not ended: metadata must keep them, however long that takes."""
        return {*self._completer.incomplete.topics, *self._lot.metadata}

    async def flush(self) -> None:
        """Returns when everything accepted so far has ended, including parts of split batches; nothing lingers
        meanwhile."""
        began = self._loop.time()
        incomplete, schedule = self._completer.incomplete, self.parts.schedule
        schedule.flush_begun()
        try:
            opened, emptied = incomplete.count, self._lot.emptied()
            if emptied is not None:
                await all_ended(await emptied)
            while (batch := incomplete.oldest_of_first(opened)) is not None:
                if batch.result.done():
                    await asyncio.sleep(0)  # a bug has interrupted its end, and the Sender will fail it
                await all_ended([batch.result])
        finally:
            schedule.flush_ended()
            self._metrics.flushed(self._loop.time() - began)

    def explain(self, topic: str, partition: int) -> Explanation:
        """Why the head batch of this partition has not been sent."""
        return explain(self.parts.situation, topic, partition, self._loop.time(), self.fatal)

    # The task

    async def _run(self) -> None:
        run = self.parts.sender_pass.run
        while not self._stopped:  # the pass itself may have ended the producer
            await self._alarm.rung()
            run()
            self._passed.set()
            self._passed.clear()  # waiters wake all the same
            if self._lot.settled:
                await notify_settled(self._lot, self._notifying)
                if self._lot.settled:
                    self._alarm.ring()

    async def passed(self) -> None:
        """Returns after the next pass."""
        _ = await self._passed.wait()

    def found(self, queue: PartitionQueue, batch: ProducerBatch, in_log: bool | None) -> None:
        """The leader has answered whether its log has the batch."""
        self._completer.found(queue, batch, in_log)
        self._alarm.ring()

    # Ends

    def give_up_waiting(self, error: KafkaError) -> None:
        """Fails the records that are not under way, in turns of the loop; nothing is sent before all of them have. A
        record that joins one of their batches meanwhile fails with it."""
        self._lot.fail_in_turns(error)
        self._completer.give_up_waiting(error)
        self._alarm.ring()

    def crashed(self, error: BaseException) -> None:
        """A task that must not die has died: everything that waits for it must end."""
        failed = KafkaError(f"the producer failed: {type(error).__name__}: {error}")
        # Its frames lead to the producer, which deliveries must not (``Audience``): they keep their places only.
        clear_frames(error.__traceback__)
        failed.__cause__ = error
        self._become_unusable(failed)
        self._end(failed)

    def fail(self, error: KafkaError) -> None:
        """The producer is unusable from now on; its records fail in turns of the loop. The first error counts."""
        if self.fatal is not None:
            return  # an answer may have the same error for hundreds of batches
        self._become_unusable(error)
        self._begin_to_give_up(error)
        self.parts.supervisor.launch(self._fail_in_turns(error), "aioproducer failing")

    def _become_unusable(self, error: KafkaError) -> None:
        self.fatal = error
        if self.transactions is not None:
            self.transactions.producer_failed(error)

    async def _fail_in_turns(self, error: KafkaError) -> None:
        try:
            await self.abort_in_turns(error)
        finally:
            self._end(error)

    def _end(self, error: KafkaError) -> None:
        """Nothing will be sent any more, so every record must end, even if close() is never called."""
        self.abort(error)
        self.parts.supervisor.cancel_all()
        self.parts.compressor.stop()
        self._stand_still()
        self._client.abort(error)
        if self._lot.settled:
            self.parts.supervisor.launch(notify_all_settled(self._lot, self._notifying), "aioproducer notify")

    def abort(self, error: KafkaError) -> None:
        """Ends every record that has not ended, with ``error`` and its known outcome."""
        self._begin_to_give_up(error)
        try:
            self._completer.abort(error)
        finally:
            self._lot.fail_all(error, aborted=True)
        self._failures.close(self._loop.time())

    def abort_at_once(self, error: KafkaError) -> None:
        """Does what :meth:`abort` does. Answers that were received before count."""
        self._client.handle_received()
        self.abort(error)

    async def abort_in_turns(self, error: KafkaError) -> None:
        """Does what :meth:`abort_at_once` does in turns of the loop; if the caller is cancelled meanwhile, the rest at
        once."""
        self._begin_to_give_up(error)
        try:
            left = self.parts.sender_pass.give_up_more()
            while left:
                await asyncio.sleep(0)
                left = self.parts.sender_pass.give_up_more()
            unwritten = self._failures.write_rest(self._loop.time())
            while unwritten:
                await asyncio.sleep(0)
                unwritten = self._failures.write_rest(self._loop.time())
        except Exception as bug:
            self.parts.supervisor.crash(bug)
        finally:
            self.abort_at_once(error)

    def _begin_to_give_up(self, error: KafkaError) -> None:
        """Has all records fail in turns of the loop. Until the last has, nothing is placed or drained."""
        self._lot.shut()
        self._lot.fail_in_turns(error, aborted=True)
        self._completer.give_up_all(error)

    async def stop(self, grace: float) -> None:
        """Ends the tasks and closes the connections; what acks=0 wrote gets ``grace`` seconds to leave the sockets."""
        self._stand_still()
        self.parts.supervisor.cancel_all()  # now: the caller of close may be cancelled at any await
        if self.transactions is not None:
            self.transactions.close()
        # A task of its own: it wakes all callers even if the caller of this is cancelled.
        notifying = start_task(notify_all_settled(self._lot, self._notifying), "aioproducer notify")
        try:
            await asyncio.wait([notifying])
            notifying.result()
            await self.parts.compressor.stopped()
            await self.parts.supervisor.stop()
            if self.transactions is not None:
                await self.transactions.closed()
        except asyncio.CancelledError:
            grace = 0.0  # the caller of close has no time left
            raise
        finally:
            await self._client.close(grace if self._waits_for_sockets else 0.0)

    def ended(self) -> KafkaError | None:
        """Why all waits must end; None while the producer works."""
        if self.fatal is not None:
            return self.fatal.fresh()
        return IllegalStateException("the producer was closed while it waited for metadata") if self._stopped else None

    def _stand_still(self) -> None:
        self._alarm.stop()
        self._stopped = True
        self._client.changes.announce()
