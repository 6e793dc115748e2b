"""An application with a transactional id: in each of its lives it has another producer and works with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Any

from aioproducer.errors import (
    IllegalStateException,
    InvalidPidMappingException,
    InvalidTxnStateException,
    KafkaError,
    ProducerFencedException,
    TimeoutException,
    TransactionAbortableException,
)
from aioproducer.producer.delivery.wait_all import wait_all
from aioproducer.producer.units.unit_group import MOST_TIMES
from aioproducer.testing.simulation.checks.transactions import End, Life, Transaction
from aioproducer.testing.simulation.faults.chaos import GROUPS
from aioproducer.testing.simulation.scenario import TopicPlan
from aioproducer.testing.simulation.surroundings import Surroundings
from aioproducer.testing.simulation.users.producers import Producers
from aioproducer.testing.simulation.users.unit_work import UnitWork
from aioproducer.testing.simulation.users.workload import Work
from aioproducer.testing.simulation.work_plan import ApplicationPlan
from aioproducer.types import TopicPartition

INPUT = TopicPlan("input", 1, 0.0)
"""The topic of the probes that check that everything works again."""

CONSUMED = TopicPlan("consumed", 500, 0.0)
"""The topic whose offsets groups commit; each transaction commits that of another partition."""

ENOUGH_MS = 60_000
"""A transaction.timeout.ms that no transaction reaches when everything works."""
DELIVERY_ENOUGH_MS = ENOUGH_MS // 2
"""A delivery.timeout.ms that no record reaches when everything works."""


class Abandoned(Exception):
    """Raised in a block, to abort it."""


class Application:
    """Runs as its plan says, and checks the results of its calls."""

    def __init__(self, plan: ApplicationPlan, around: Surroundings, producers: Producers, random: Random) -> None:
        self._plan = plan
        self._around = around
        self._producers = producers
        self._random = random

    async def run(self) -> None:
        """Runs all lives of the application."""
        await asyncio.sleep(self._plan.begins_at)
        for _ in range(self._plan.lives):
            await self._live()
            await asyncio.sleep(self._random.choice((0.0, 0.01, 0.5)))

    async def probe(self) -> None:
        """After all faults: the transactional id can be used, and every partition takes a transaction."""
        around = self._around
        deadline = around.loop.exact_time() + around.recovery
        while (failure := await self._try_once()) is not None:
            if around.loop.exact_time() > deadline:
                around.violations.add(
                    "a transactional id can be used again", f"{self._plan.transactional_id}: {failure!r}"
                )
                return
            await asyncio.sleep(0.3)

    # A life

    async def _start(self, timeout_ms: int, **more: Any) -> _Living:
        plan, around = self._plan, self._around
        number = await self._producers.start(
            transactional_id=plan.transactional_id, transaction_timeout_ms=timeout_ms, **more
        )
        life = Life(plan.transactional_id, number, around.loop.exact_time())
        around.transactions.lives.append(life)
        return _Living(plan, around, self._producers, self._random, life)

    async def _live(self) -> None:
        around, random = self._around, self._random
        living = await self._start(self._plan.timeout_ms)
        using = around.loop.create_task(living.use(), name=f"life {living.life.producer}")
        span = random.expovariate(1 / self._plan.span) if self._plan.span else None
        await asyncio.wait([using], timeout=span)
        if not using.done() and random.random() < 0.5:
            living.life.closing = True
            using.cancel()
        await living.close()
        await asyncio.wait([using])
        if not using.cancelled():
            using.result()

    async def _try_once(self) -> KafkaError | None:
        living = await self._start(ENOUGH_MS, delivery_timeout_ms=DELIVERY_ENOUGH_MS)
        try:
            await living.write_everywhere()
        except KafkaError as error:
            return error
        finally:
            await living.close()
        return None


class _Living:
    """One producer and its user."""

    def __init__(
        self, plan: ApplicationPlan, around: Surroundings, producers: Producers, random: Random, life: Life
    ) -> None:
        self.life = life
        self._plan = plan
        self._around = around
        self._random = random
        self._producers = producers
        self._producer = producer = producers[life.producer]
        self._began_at = float("inf")
        """When the last transaction began."""
        self._work = Work(
            around.scenario, plan.work, producer, around.ledger, around.violations, around.loop, random, life.producer
        )

    async def close(self) -> None:
        around, scenario = self._around, self._around.scenario
        self.life.closing = True
        around.transactions.trace("close", self.life.producer)
        timeout = self._random.choice((None, None, 0.0, scenario.close_timeout))
        began = around.loop.exact_time()
        await self._producer.close(timeout)
        if self._plan.units:
            # A transaction of units is committed, aborted when that fails, and aborted again when close gives it up. A
            # unit whose transactions other units make fail joins its last one within MOST_TIMES of its time.
            around.closed_in_time(began, timeout, calls=3, times=MOST_TIMES + 1)
        else:
            around.closed_in_time(began, timeout)
        self._producers.check_ended(self.life.producer)
        self._producers.check_metrics(self.life.producer)

    async def use(self) -> None:
        """Runs until all transactions of this life have ended, or the producer is unusable."""
        try:
            await self._init()
            if self._plan.units and self._random.random() < self._plan.units:
                consumed = CONSUMED.name, CONSUMED.partitions
                units = UnitWork(
                    self._plan, self._around, self._producer, self._work, self.life, self._random, consumed
                )
                self._began_at = self._now()  # a transaction of units may be as old as that
                await units.run()
                return
            for _ in range(self._plan.transactions):
                await self._transact()
                await self._work.pause()
        except KafkaError as error:
            if not self.life.closing and not self._may_end_it(error):
                self._around.violations.add("only a newer producer ends an older", f"{self.life}: {error!r}")

    def _may_end_it(self, error: KafkaError) -> bool:
        rates = self._around.scenario.rates
        if isinstance(error, IllegalStateException) and isinstance(error.__cause__, KafkaError):
            error = error.__cause__  # the producer had failed before this call
        if isinstance(error, InvalidTxnStateException) and (self._outlived() or self._has_rivals()):
            return True
        if isinstance(error, ProducerFencedException):
            # Fenced by a rival or, unless times are generous, by the transaction's time-out.
            return not self._around.scenario.calm or self._has_rivals()
        if isinstance(error, InvalidPidMappingException) and (self._outlived() or self._has_rivals()):
            return True  # the last epoch was used by that abort, or by a rival, and there is another producer id
        return not rates.keys().isdisjoint(("codes", "ids", "coordinators"))

    def _outlived(self) -> bool:
        """Whether the transaction may have exceeded its time-out. Its coordinator has then aborted it, and with the
        second protocol it answers a commit with a wrong state."""
        return self._now() - self._began_at >= self._plan.timeout_ms / 1000

    def _has_rivals(self) -> bool:
        """Whether another application has the same id. Its InitProducerId aborts the transaction and raises the epoch.
        Kafka 4 takes END_TXN of the former epoch for a repetition, and answers a commit with a wrong state.
        """
        return self._around.scenario.users(self.life.transactional_id) > 1

    async def write_everywhere(self) -> None:
        """Commits a transaction with a record for each partition that applications write to."""
        around = self._around
        topics = [topic for topic in around.cluster.topics if topic.name != CONSUMED.name]
        await self._init()
        for topic in topics:
            await self._until_ended("partitions_for", partial(self._producer.partitions_for, topic.name))
        transaction = await self._begin()
        for topic in topics:
            for partition in topic.partitions:
                entry = around.ledger.open(
                    self.life.producer, topic.name, {"partition": partition.index, "key": b"probe", "value": b"probe"}
                )
                entry.as_it_is = "value_serializer" not in around.scenario.config
                entry.time_limit = DELIVERY_ENOUGH_MS / 1000
                try:
                    delivery = await self._producer.enqueue(entry.record)
                except KafkaError as error:
                    entry.error = error
                    raise
                around.ledger.accepted(entry, delivery, parked=False, watched=True)
                await wait_all([delivery])
        await self._commit(transaction)

    async def _init(self) -> None:
        self.life.init_requested_at = self._now()
        await self._until_ended("init_transactions", self._producer.init_transactions)
        self.life.initialized_at = self._now()

    # A transaction

    async def _transact(self) -> None:
        aborts = self._random.random() < self._plan.aborts
        if self._random.random() < self._plan.by_hand:
            await self._by_hand(aborts)
        else:
            await self._in_a_block(aborts)

    async def _begin(self) -> Transaction:
        await self._producer.begin_transaction()
        return self._begun()

    def _begun(self) -> Transaction:
        self._began_at = self._now()
        transaction = self._around.transactions.begin(self.life)
        self._around.ledger.transactions[self.life.producer] = transaction
        return transaction

    async def _by_hand(self, aborts: bool) -> None:
        transaction = await self._begin()
        try:
            await self._fill(transaction)
        except KafkaError:
            if self.life.closing:
                raise
            aborts = True
        if not aborts:
            try:
                await self._commit(transaction)
            except TransactionAbortableException:
                pass
            else:
                return
        await self._abort(transaction)

    async def _in_a_block(self, aborts: bool) -> None:
        transactions: list[Transaction] = []

        async def block() -> None:
            async with self._producer.transaction():
                transactions.append(self._begun())
                await self._fill(transactions[0])
                if aborts:
                    raise Abandoned
                transactions[0].commit_requested_at = self._now()

        try:
            if await self._given_time(block()):
                transactions[0].end = End.COMMITTED
                return
        except Abandoned:
            transactions[0].end = End.ABORTED
            return
        except TransactionAbortableException:
            if transactions[0].commit_requested_at is not None:
                transactions[0].end = End.ABORTED
                return
        except KafkaError:
            if self.life.closing or not transactions:
                raise
        if transactions:
            await self._settle(transactions[0])

    async def _settle(self, transaction: Transaction) -> None:
        """Finds out how an interrupted block ends, by calling commit or abort again."""
        if transaction.commit_requested_at is not None:
            try:
                await self._commit(transaction)
            except TransactionAbortableException:
                pass
            except IllegalStateException:
                if self.life.closing:
                    raise
                # The transaction has failed; its abort is under way or done.
            else:
                return
        try:
            await self._abort(transaction)
        except IllegalStateException:
            if self.life.closing:
                raise
            # The block has aborted it.

    async def _fill(self, transaction: Transaction) -> None:
        records = self._random.randrange(self._plan.work.records + 1)
        before = self._random.randrange(records + 1)
        await self._work.hand_over(before)
        if self._random.random() < self._plan.offsets:
            await self._send_offsets(transaction)
        await self._work.hand_over(records - before)

    async def _send_offsets(self, transaction: Transaction) -> None:
        transaction.group = self._random.choice(GROUPS)
        transaction.offset = TopicPartition(CONSUMED.name, transaction.number % CONSUMED.partitions)
        offsets = {transaction.offset: transaction.number}
        await self._until_ended(
            "send_offsets_to_transaction",
            lambda: self._producer.send_offsets_to_transaction(offsets, transaction.group),
        )
        transaction.offset_taken = True

    async def _commit(self, transaction: Transaction) -> None:
        if transaction.commit_requested_at is None:
            transaction.commit_requested_at = self._now()
        try:
            await self._until_ended("commit_transaction", self._producer.commit_transaction)
        except TransactionAbortableException:
            transaction.end = End.ABORTED
            raise
        transaction.end = End.COMMITTED
        if (entry := self._work.taken_now()) is not None:
            self._around.violations.add("no record is taken between transactions", entry)

    async def _abort(self, transaction: Transaction) -> None:
        await self._until_ended("abort_transaction", self._producer.abort_transaction)
        transaction.end = End.ABORTED

    # Waiting

    def _now(self) -> float:
        return self._around.loop.exact_time()

    async def _until_ended(self, what: str, call: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Calls again until the work has ended: cancelling a call does not cancel the work."""
        around = self._around
        deadline: float | None = None
        while True:
            began = self._now()
            around.transactions.trace(what, self.life.producer)
            try:
                if await self._given_time(call()):
                    around.transactions.trace(what, self.life.producer, "has ended")
                    return
            except TimeoutException:
                pass
            finally:
                longest = around.scenario.milliseconds("max_block_ms")
                around.violations.in_time(what, began, self._now(), longest)
            if around.faults.over:
                deadline = self._now() + around.recovery if deadline is None else deadline
                if self._now() > deadline:
                    around.violations.add("every call to the coordinator ends", f"{what} of {self.life}")
                    raise TimeoutException(what)

    async def _given_time(self, work: Coroutine[Any, Any, object]) -> bool:
        """Awaits ``work`` in a task that may be cancelled; False if it was."""
        try:
            await self._work.maybe_cancelled(work)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return False
        return True
