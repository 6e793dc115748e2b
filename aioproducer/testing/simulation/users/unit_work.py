"""Handlers that share a transactional producer, each with units of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from random import Random
from typing import Any

from aioproducer.errors import IllegalStateException, KafkaError, Outcome
from aioproducer.producer.producer import KafkaProducer
from aioproducer.producer.units.unit import Unit
from aioproducer.producer.units.unit_group import MOST_TIMES
from aioproducer.testing.simulation.checks.ledger import Entry
from aioproducer.testing.simulation.checks.transactions import End, Life, Transaction
from aioproducer.testing.simulation.faults.chaos import GROUPS
from aioproducer.testing.simulation.surroundings import Surroundings
from aioproducer.testing.simulation.users.workload import Work, handed_over
from aioproducer.testing.simulation.work_plan import ApplicationPlan
from aioproducer.types import TopicPartition


class Abandoned(Exception):
    """Raised in a block, to drop its unit."""


class UnitWork:
    """The handlers of one life. Each unit is a transaction in the ledger; ``consumed`` is the topic of its offset."""

    def __init__(
        self,
        plan: ApplicationPlan,
        around: Surroundings,
        producer: KafkaProducer,
        work: Work,
        life: Life,
        random: Random,
        consumed: tuple[str, int],
    ) -> None:
        self._plan = plan
        self._around = around
        self._producer = producer
        self._work = work
        self._life = life
        self._random = random
        self._consumed = consumed

    async def run(self) -> None:
        """Runs all handlers; raises the error that ended the first of them."""
        handlers = [
            self._around.loop.create_task(self._handle(), name=f"handler {number} of {self._life.producer}")
            for number in range(self._random.choice((1, 3, 10)))
        ]
        try:
            await asyncio.gather(*handlers)
        finally:
            for handler in handlers:
                handler.cancel()
            await asyncio.gather(*handlers, return_exceptions=True)

    async def _handle(self) -> None:
        for _ in range(self._plan.transactions):
            await self._one()
            await self._work.pause()

    async def _one(self) -> None:
        """A unit, and what becomes of it."""
        made: list[Unit[Any, Any]] = []
        transaction = self._around.transactions.begin(self._life)
        transaction.of_units = True
        entries: list[Entry] = []
        try:
            if not await self._maybe_cancelled(self._block(transaction, entries, made)):
                await self._look_again(transaction, made)
        except asyncio.CancelledError:
            transaction.cancelled = True
            raise
        except Abandoned:
            transaction.end = End.ABORTED
        except KafkaError as error:
            self._failed(transaction, error, made)
        else:
            if made and made[0].committed:
                transaction.end = End.COMMITTED
        finally:
            self._around.transactions.trace("unit", transaction, made[0] if made else None)
            for entry in entries:
                entry.delivered = transaction.end is End.COMMITTED
                entry.cancelled = not entry.delivered
        self._ended_in_time(transaction)

    async def _block(self, transaction: Transaction, entries: list[Entry], made: list[Unit[Any, Any]]) -> None:
        around, random = self._around, self._random
        async with self._producer.unit() as unit:
            made.append(unit)
            for _ in range(random.randrange(self._plan.work.records + 1)):
                entry = self._work.entry_of(transaction)
                entry.cancelled = True  # until more is known
                try:
                    await handed_over(unit.send, entry)
                except KafkaError as error:
                    entry.error = error
                    entry.cancelled = False
                    if isinstance(error, IllegalStateException) or random.random() < 0.5:
                        raise
                else:
                    entries.append(entry)
                if random.random() < 0.2:
                    await asyncio.sleep(random.choice((0.0, 0.001)))
            # Each unit has a partition of its own for that, as long as there are any.
            if transaction.number < self._consumed[1] and random.random() < self._plan.offsets:
                await self._send_offsets(unit, transaction)
            if self._plan.doomed and random.random() < self._plan.doomed:
                await self._doom(unit, transaction, entries)
            if random.random() < self._plan.aborts:
                raise Abandoned
            around.transactions.ended(transaction, around.loop.exact_time())
        if len(unit.result()) != len(entries):
            around.violations.add("a unit gives the metadata of its records", f"{transaction}: {unit.result()}")

    async def _send_offsets(self, unit: Unit[Any, Any], transaction: Transaction) -> None:
        topic, _ = self._consumed
        transaction.group = self._random.choice(GROUPS)
        transaction.offset = TopicPartition(topic, transaction.number)
        await unit.send_offsets({transaction.offset: transaction.number}, transaction.group)
        transaction.offset_taken = True

    async def _doom(self, unit: Unit[Any, Any], transaction: Transaction, entries: list[Entry]) -> None:
        """Adds an offset or a record that is not accepted in any time."""
        transaction.doomed = True
        if self._random.random() < 0.5:
            await unit.send_offsets({TopicPartition("nowhere", 0): 1}, self._random.choice(GROUPS))
            return
        cluster, topic = self._around.cluster, f"deleted-{transaction.number}"
        entry = self._work.entry_of(transaction)
        entry.cancelled = True
        entry.record = entry.record._replace(topic=topic, partition=0)
        cluster.create_topic(topic)
        try:
            await handed_over(unit.send, entry)
        except KafkaError as error:
            entry.error = error
            entry.cancelled = False
            raise
        finally:
            cluster.delete_topic(topic)
        entries.append(entry)

    def _failed(self, transaction: Transaction, error: KafkaError, made: list[Unit[Any, Any]]) -> None:
        """The block has raised; raises again what ends the whole life."""
        transaction.failure = error
        transaction.cancelled = self._life.closing
        if made and made[0].outcome is Outcome.NOT_SENT:
            transaction.end = End.ABORTED
        elif made and made[0].outcome is None:
            self._around.violations.add("a unit that failed has an outcome", f"{transaction}: {error!r}")
        if (
            self._producer._core.sender.fatal is not None
            or self._life.closing
            or isinstance(error, IllegalStateException)
        ):
            raise error

    async def _look_again(self, transaction: Transaction, made: list[Unit[Any, Any]]) -> None:
        """The task was cancelled: finds out how the unit has ended, if it is being committed."""
        transaction.cancelled = True
        if not made:
            return
        unit = made[0]
        if unit.outcome is Outcome.NOT_SENT:
            transaction.end = End.ABORTED
        elif transaction.commit_requested_at is not None and self._random.random() < 0.7:
            await unit.wait()

    async def _maybe_cancelled(self, work: Coroutine[Any, Any, None]) -> bool:
        """Awaits ``work`` in a task that may be cancelled; False if it was."""
        try:
            await self._work.maybe_cancelled(work)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return False
        return True

    def _ended_in_time(self, transaction: Transaction) -> None:
        """A unit is put into its last transaction within three times delivery.timeout.ms of its end, and ends there in
        that time, too, or within max.block.ms twice."""
        if transaction.commit_requested_at is None:
            return
        scenario, now = self._around.scenario, self._around.loop.exact_time()
        allowed = (MOST_TIMES + 1) * scenario.milliseconds("delivery_timeout_ms") + 4 * scenario.milliseconds(
            "max_block_ms"
        )
        window = float(scenario.config.get("transaction_group_window_ms", 0)) / 1000
        self._around.violations.in_time(f"{transaction}", transaction.commit_requested_at, now, allowed + window)


def of_units(transactions: list[Transaction]) -> Iterator[Transaction]:
    """Those that are units."""
    return (transaction for transaction in transactions if transaction.of_units)
