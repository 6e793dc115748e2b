"""The users of a simulated producer."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from aioproducer.errors import (
    DeliveryError,
    IllegalStateException,
    KafkaError,
    ProducerFencedException,
    SerializationException,
)
from aioproducer.producer.bulk.result import BulkResult
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.producer import KafkaProducer
from aioproducer.testing.simulation.checks.ledger import Entry, Ledger
from aioproducer.testing.simulation.checks.open_batches import check_open_batches
from aioproducer.testing.simulation.checks.transactions import Transaction
from aioproducer.testing.simulation.checks.violations import Violations
from aioproducer.testing.simulation.faults.faults import EXPIRATION_MS
from aioproducer.testing.simulation.loop import EPOCH_MS, SimulatedLoop
from aioproducer.testing.simulation.scenario import KEYS, LARGE, LARGEST, Scenario, TopicPlan
from aioproducer.testing.simulation.work_plan import WorkPlan
from aioproducer.types import ProducerRecord

CAN_SEND_TABLES = importlib.util.find_spec("pyarrow") is not None

T = TypeVar("T")

REFUSALS = (IllegalStateException, ProducerFencedException)
"""The errors of a producer that takes no more records."""


MOST_IN_BULK = 30
MOST_TOGETHER = 30


def handed_over(call: Callable[..., T], entry: Entry) -> T:
    """Calls a method of the producer with the record. One in four is a ProducerRecord, which always takes a detour;
    the others are appended at once where possible."""
    record = entry.record
    if entry.number % 4 == 0:
        return call(record)
    topic, value, key, partition, timestamp_ms, headers = record
    return call(topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers)


class CallbackRaised(Exception):
    """Raised by callbacks on purpose."""


class Work:
    """One task that uses one producer as its plan says, and checks the results of its calls."""

    def __init__(
        self,
        scenario: Scenario,
        plan: WorkPlan,
        producer: KafkaProducer,
        ledger: Ledger,
        violations: Violations,
        loop: SimulatedLoop,
        random: Random,
        number: int | None = None,
    ) -> None:
        """``number`` is the producer's, if it is not the plan's."""
        self._number = plan.producer if number is None else number
        self._scenario = scenario
        self._plan = plan
        self._producer = producer
        self._ledger = ledger
        self._violations = violations
        self._loop = loop
        self._random = random
        self._rests = plan.rests
        self._longest_block = scenario.milliseconds("max_block_ms")
        self._longest = self._longest_block + scenario.milliseconds("delivery_timeout_ms")

    async def run(self) -> None:
        """Runs until all records were handed over, or the producer is closed."""
        try:
            await self.hand_over(self._plan.records)
        except REFUSALS:
            pass  # closed, or failed

    async def hand_over(self, records: int) -> None:
        """Hands over this many records; raises one of the refusals if the producer takes no more."""
        plan, random = self._plan, self._random
        for count in range(records):
            if count and count % plan.burst == 0:
                await self.pause()
            await self._hand_over()
            if random.random() < plan.flushes:
                await self._flush()
            if random.random() < 0.01:
                await self._ask_for_partitions()
            if random.random() < 0.02:
                self._read_diagnosis()

    async def pause(self) -> None:
        check_open_batches(self._producer, self._violations)
        if self._rests and self._random.random() < 0.3:
            self._rests -= 1
            await asyncio.sleep(self._random.uniform(0.5, 1.5) * self._scenario.expiry)
        elif self._plan.pause:
            await asyncio.sleep(self._random.expovariate(1 / self._plan.pause))
        elif self._random.random() < 0.2:
            self._loop.hold(self._random.expovariate(1000))
        else:
            await asyncio.sleep(0)

    # Records

    def _fields(self, topic: TopicPlan) -> tuple[str, dict[str, Any]]:
        random = self._random
        size = random.randrange(100)
        if random.random() < self._plan.large:
            batch_size = self._scenario.config["batch_size"]
            size = random.randrange(LARGEST // 4) if batch_size == LARGEST else batch_size + random.randrange(LARGE)
        fields: dict[str, Any] = {"value": None if random.random() < 0.03 else random.randbytes(size)}
        kind = random.random()
        if kind < 0.2:
            beyond = random.random() < 0.02
            fields["partition"] = topic.partitions if beyond else random.randrange(topic.partitions)
        elif kind < 0.9:
            fields["key"] = random.choice(KEYS)
        if random.random() < 0.1:
            fields["timestamp_ms"] = EPOCH_MS + random.randrange(1000)
        if self._plan.old and random.random() < self._plan.old:
            fields["timestamp_ms"] = EPOCH_MS - 2 * EXPIRATION_MS
        if random.random() < 0.1:
            fields["headers"] = (("null", None),)
        return topic.name, fields

    def _entry(self, topic: TopicPlan | None = None) -> Entry:
        topic = topic or self._random.choice(self._scenario.topics)
        entry = self._ledger.open(self._number, *self._fields(topic))
        entry.as_it_is = "value_serializer" not in self._scenario.config
        return entry

    def entry_of(self, transaction: Transaction) -> Entry:
        """An entry for a record of a unit, which is no open transaction of the producer."""
        entry = self._entry()
        entry.transaction = transaction
        return entry

    async def _hand_over(self) -> None:
        if self._plan.bulk and self._random.random() < self._plan.bulk:
            await self._send_many()
        elif self._plan.enqueues and self._random.random() < 0.8:
            await self._enqueue()
        else:
            entry = self._entry()
            delivery = self._send(entry)
            if delivery is not None and self._random.random() < self._plan.waits:
                if self._random.random() < 0.8:
                    await self._wait(entry, delivery)
                else:
                    await self._wait_for_many(entry, delivery)

    async def _wait_for_many(self, first: Entry, delivery: Delivery) -> None:
        """Sends more records, and awaits all of them together: there may be no room for all."""
        sent = {first: delivery}
        for _ in range(MOST_TOGETHER):
            entry = self._entry()
            another = self._send(entry)
            if another is not None:
                sent[entry] = another
        await asyncio.gather(*(self._wait(entry, one) for entry, one in sent.items()))

    def taken_now(self) -> Entry | None:
        """Hands over a record where none may be accepted; None if the producer refuses it."""
        entry = self._ledger.open(self._number, self._scenario.topics[0].name, {"value": b"late", "partition": 0})
        entry.as_it_is = "value_serializer" not in self._scenario.config
        try:
            _ = self._send(entry)
        except REFUSALS:
            return None
        return entry

    def _send(self, entry: Entry) -> Delivery | None:
        """None if the serializer fails."""
        try:
            delivery = handed_over(self._producer.send, entry)
        except REFUSALS as error:
            entry.error = error
            raise
        except SerializationException as error:
            entry.error = error
            return None
        self._accepted(entry, delivery, parked=delivery.place()[0].lot is not None)
        return delivery

    def _accepted(self, entry: Entry, delivery: Delivery, *, parked: bool) -> None:
        random = self._random
        self._ledger.accepted(entry, delivery, parked=parked, watched=random.random() < 0.7)
        if random.random() < 0.03:
            delivery.add_done_callback(self._send_another)
        if random.random() < 0.02:
            delivery.add_done_callback(_raise)

    def _send_another(self, delivery: Delivery) -> None:
        try:
            _ = self._send(self._entry())
        except REFUSALS:
            pass

    async def _enqueue(self) -> None:
        try:
            await self.maybe_cancelled(self._enqueue_now())
        except asyncio.CancelledError:
            pass

    async def _enqueue_now(self) -> None:
        entry = self._entry()  # only now: its number is its place in the order
        try:
            delivery = await handed_over(self._producer.enqueue, entry)
        except asyncio.CancelledError:
            entry.cancelled = True
            raise
        except REFUSALS as error:
            entry.error = error
            raise
        except KafkaError as error:
            entry.error = error
        else:
            self._accepted(entry, delivery, parked=False)
        self._in_time("enqueue", entry.sent_at, self._longest_block)

    async def _send_many(self) -> None:
        topic = self._random.choice(self._scenario.topics)
        entries = [self._entry(topic) for _ in range(self._random.randrange(1, MOST_IN_BULK))]
        in_a_table = self._random.random() < 0.4 and CAN_SEND_TABLES
        bulk = object()
        for entry in entries:
            entry.bulk, entry.cancelled = bulk, True  # until more is known
            entry.as_it_is = entry.as_it_is or in_a_table
        records = [entry.record for entry in entries]
        began = self._loop.exact_time()
        call = self._of_a_table(topic.name, records) if in_a_table else self._of_lists(topic.name, records)
        try:
            result = await self.maybe_cancelled(call)
        except asyncio.CancelledError:
            return
        except REFUSALS as error:
            for entry in entries:
                entry.error = error
            raise
        failed = dict(result.errors)
        for place, entry in enumerate(entries):
            entry.cancelled, entry.error, entry.delivered = False, failed.get(place), place not in failed
        if (result.count, result.failed) != (len(entries), len(failed)):
            self._violations.add("a bulk send accounts for every record", f"{result} of {len(entries)}")
        # Each record may have to wait for its place, until one has waited in vain.
        self._in_time("send_many", began, len(entries) * self._longest_block + self._longest)

    def _of_lists(self, topic: str, records: list[ProducerRecord]) -> Coroutine[Any, Any, BulkResult]:
        return self._producer.send_many(
            topic,
            [record.value for record in records],
            keys=[record.key for record in records],
            partitions=[record.partition for record in records],
            timestamps_ms=[record.timestamp_ms for record in records],
            headers=[record.headers for record in records],
        )

    def _of_a_table(self, topic: str, records: list[ProducerRecord]) -> Coroutine[Any, Any, BulkResult]:
        import pyarrow

        header = pyarrow.struct([("name", pyarrow.string()), ("value", pyarrow.binary())])
        columns = {
            "value": pyarrow.array([record.value for record in records], pyarrow.binary()),
            "key": pyarrow.array([record.key for record in records], pyarrow.binary()),
            "partition": pyarrow.array([record.partition for record in records], pyarrow.int32()),
            "timestamp": pyarrow.array([record.timestamp_ms for record in records], pyarrow.int64()),
            "headers": pyarrow.array(
                [[{"name": name, "value": value} for name, value in record.headers or ()] for record in records],
                pyarrow.list_(header),
            ),
        }
        return self._producer.send_table(topic, pyarrow.table(columns), **{name: name for name in columns})

    async def _wait(self, entry: Entry, delivery: Delivery) -> None:
        entry.awaited = True
        began = self._loop.exact_time()
        try:
            metadata = await self.maybe_cancelled(_outcome(delivery))
            if metadata != delivery.result():
                self._violations.add("awaiting a record gives its outcome", f"{metadata}, not {delivery.result()}")
        except asyncio.CancelledError:
            entry.left = True
            return
        except DeliveryError as error:
            recorded = delivery.exception()
            if recorded is None or (type(recorded), str(recorded)) != (type(error), str(error)):
                self._violations.add("awaiting a record gives its outcome", f"{error!r}, not {recorded!r}")
        self._in_time("a delivery", began, self._longest)

    async def maybe_cancelled(self, work: Coroutine[Any, Any, T]) -> T:
        """Awaits ``work`` in its own task, which may be cancelled; raises CancelledError if it was."""
        random = self._random
        if random.random() >= self._plan.cancels:
            return await work
        task = self._loop.create_task(work, name="maybe cancelled")
        task.add_done_callback(_seen)  # retrieves the exception if this task is cancelled, too
        try:
            for _ in range(random.randrange(6)):
                await asyncio.sleep(0)
            if random.random() < 0.5:
                await asyncio.wait([task], timeout=random.expovariate(20))
        finally:
            task.cancel()
        return await task

    # The rest

    async def _flush(self) -> None:
        pending = self._ledger.pending(self._number)
        began = self._loop.exact_time()
        try:
            await self.maybe_cancelled(self._producer.flush())
        except asyncio.CancelledError:
            return
        self._in_time("flush", began, self._longest)
        left = [entry for entry in pending if not entry.settled()]
        if left:
            self._violations.add("flush returns when all before it has ended", f"still pending: {left}")

    async def _ask_for_partitions(self) -> None:
        topic = self._random.choice(self._scenario.topics)
        began = self._loop.exact_time()
        try:
            await self.maybe_cancelled(self._producer.partitions_for(topic.name))
        except asyncio.CancelledError:
            return
        except REFUSALS:
            raise
        except KafkaError:
            pass
        self._in_time("partitions_for", began, self._longest_block)

    def _read_diagnosis(self) -> None:
        """Calls ``explain`` and ``health``, which change nothing and never fail."""
        topic = self._random.choice(self._scenario.topics)
        explanation = self._producer.explain(topic.name, self._random.randrange(topic.partitions + 1))
        if not str(explanation):
            self._violations.add("explain gives a reason", explanation)
        self._producer.health()

    def _in_time(self, what: str, began: float, allowed: float) -> None:
        self._violations.in_time(what, began, self._loop.exact_time(), allowed)


async def _outcome(delivery: Delivery) -> Any:
    return await delivery


def _raise(delivery: Delivery) -> None:
    raise CallbackRaised


def _seen(task: asyncio.Task[object]) -> None:
    if not task.cancelled():
        task.exception()
