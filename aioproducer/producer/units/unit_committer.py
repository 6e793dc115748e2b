"""Commits units: one task, which runs while any unit waits, and carries out what the group decides.

begin → put the units that wait → leave the transaction open for the window → commit → settle its units, or abort it and
commit them anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from random import Random
from typing import Any, Final

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import DeliveryError, KafkaError, Outcome, TimeoutException, TransactionAbortedException
from aioproducer.metrics import ProducerMetrics
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.transactions.offsets import Offsets
from aioproducer.producer.transactions.state import TransactionState
from aioproducer.producer.transactions.timed_transactions import TimedTransactions
from aioproducer.producer.transactions.transaction_calls import TransactionCalls
from aioproducer.producer.units.unit_blame import is_of_a_late_record, is_of_offsets, is_of_the_transaction
from aioproducer.producer.units.unit_group import UnitGroup
from aioproducer.producer.units.unit_member import UnitMember, UnitRecord
from aioproducer.timing.backoff import ExponentialBackoff
from aioproducer.timing.time_slice import TimeSlice
from aioproducer.types import ConsumerGroupMetadata

Spawn = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]
OwnErrors = Mapping[UnitMember, DeliveryError]
"""What units met themselves."""
NO_ERRORS: Final[OwnErrors] = {}


class UnitCommitter:
    """``place(record)`` puts a record into the accumulator; ``settled(member, error)`` reports the end of a unit;
    ``fatal()`` is why the producer is unusable, if it is."""

    def __init__(
        self,
        config: ProducerConfig,
        group: UnitGroup,
        transactions: TransactionCalls,
        metrics: ProducerMetrics,
        random: Random,
        *,
        place: Callable[[UnitRecord], Delivery],
        settled: Callable[[UnitMember, DeliveryError | None], None],
        fatal: Callable[[], KafkaError | None],
        spawn: Spawn,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._group = group
        self._transactions = transactions
        self._calls = TimedTransactions(transactions, metrics, self._loop.time)
        self._metrics = metrics
        self._window = config.transaction_group_window_ms / 1000
        self._delivery_timeout_ms = config.delivery_timeout_ms
        self._max_block_ms = config.max_block_ms
        self._longest = (config.delivery_timeout_ms + 2 * config.max_block_ms) / 1000
        self._backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random)
        self._place = place
        self._settled = settled
        self._fatal = fatal
        self._spawn = spawn
        self._slice = TimeSlice(self._loop)
        self._task: asyncio.Task[None] | None = None
        self._more = asyncio.Event()
        """A unit has ended since it was cleared, or the window must close."""
        self._hurry = False
        self._setbacks = 0
        """Transactions in a row that failed through no unit's fault."""
        self._group_asked: ConsumerGroupMetadata | None = None
        """The group whose offsets are being sent, or were refused."""
        self._began = 0.0
        """When the first unit was put into the transaction."""

    def wake(self) -> None:
        """A unit waits."""
        self._more.set()
        if self._task is None:
            self._task = self._spawn(self._run(), "aioproducer units")

    def hurry(self) -> None:
        """Ends the window, now and of every later transaction: the producer is being closed."""
        self._hurry = True
        self._more.set()

    def stop(self, error: KafkaError) -> None:
        """Fails every unit that has not ended, and ends the task."""
        self._fail_all(error)
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._group.waiting:
                await self._transact()
        finally:
            self._task = None
            if self._group.busy():
                self._fail_all(self._fatal() or KafkaError("the task that commits units was ended from outside"))

    # One transaction

    async def _transact(self) -> None:
        group = self._group
        self._expire()
        if not group.waiting:
            return
        try:
            await self._until_ended(partial(self._calls.begin, of_units=True))
        except KafkaError as error:
            self._give_up(error)
            return
        self._began = self._loop.time()
        self._more.clear()
        members = group.begin()
        while members:
            await self._put(members)
            members = group.join()
        await self._leave_open()
        count = len(group.joined)
        try:
            await self._commit()
        except KafkaError as error:
            await self._recover(error)
            return
        self._setbacks = 0
        if count:
            self._metrics.units_committed(count, self._loop.time() - self._began, self._loop.time())
        await self._settle((member, None) for member in group.committed())

    async def _put(self, members: Iterable[UnitMember]) -> None:
        """Puts units into the transaction, each as a whole: there is no turn of the loop within one."""
        self._slice.begin()
        for member in members:
            if self._transactions.status.goes_on():
                member.deliveries = [self._place(record) for record in member.records]
            else:
                member.deliveries = ()  # the transaction has failed: the unit is committed anew
            if self._slice.over():
                await asyncio.sleep(0)
                self._slice.begin()

    async def _leave_open(self) -> None:
        """Lets more units join until the window is over."""
        until = self._began + self._window
        while not self._hurry and (left := until - self._loop.time()) > 0:
            try:
                async with asyncio.timeout(left):
                    await self._more.wait()
            except TimeoutError:
                break
            self._more.clear()
            await self._put(self._group.join())

    async def _commit(self) -> None:
        for group, offsets in _merged(self._group.joined):
            self._group_asked = group
            # Not again after max.block.ms: coordinators are asked for ever about a topic that does not exist.
            await self._calls.send_offsets(offsets, group)
        self._group_asked = None
        await self._until_ended(self._calls.commit)

    async def _until_ended(self, call: Callable[[], Coroutine[Any, Any, None]], own: OwnErrors = NO_ERRORS) -> None:
        """Calls again until the operation has ended, because each call waits at most max.block.ms.

        Meanwhile, waiting units expire. If the operation takes too long, the units in the transaction fail, each with
        its own error or with a TimeoutException.
        """
        while True:
            try:
                return await call()
            except TimeoutException as error:
                if self._transactions.status.state is TransactionState.FATAL_ERROR or self._transactions.status.closed:
                    raise
                self._expire()
                if self._group.joined and self._loop.time() >= self._began + self._longest:
                    late = TimeoutException(
                        f"the transaction of the unit has not ended within delivery.timeout.ms="
                        f"{self._delivery_timeout_ms} and twice max.block.ms={self._max_block_ms}: "
                        f"{self._transactions.status.state.value}"
                    )
                    late.__cause__ = error
                    self._fail_joined(late, own, goes_on=self._transactions.status.goes_on())

    async def _settle(self, ends: Iterable[tuple[UnitMember, DeliveryError | None]]) -> None:
        """Reports many ends, giving the loop its turns; all of them are reported even if this task is cancelled."""
        left = iter(tuple(ends))
        self._slice.begin()
        try:
            for member, error in left:
                self._settled(member, error)
                if self._slice.over():
                    await asyncio.sleep(0)
                    self._slice.begin()
        finally:
            for member, error in left:
                self._settled(member, error)

    # Failures

    async def _recover(self, error: KafkaError) -> None:
        """The commit has failed: aborts the transaction, and lets the group decide who is committed anew."""
        transactions = self._transactions
        shared = error.__cause__ if isinstance(error.__cause__, KafkaError) else error
        own = self._own_errors(shared, self._loop.time())
        if any(not is_of_the_transaction(one) for one in own.values()):
            self._group.start_again(self._loop.time())  # already now, because the abort may take long
        while transactions.is_open():
            try:
                await self._until_ended(self._calls.abort, own)
            except KafkaError as failed:
                shared = failed
                break
        state = transactions.status.state
        aborted = state in (TransactionState.READY, TransactionState.UNINITIALIZED)
        if not aborted or transactions.may_be_committed:
            self._fail_joined(self._fatal() or shared, own)
            if not aborted:
                self._give_up(self._fatal() or shared)
            return
        ended = DeliveryError.of(shared, Outcome.NOT_SENT)
        await self._settle(self._group.aborted(own, ended, self._loop.time()))
        self._metrics.units_aborted(self._loop.time())
        if any(not is_of_the_transaction(one) for one in own.values()) or not is_of_the_transaction(ended):
            self._setbacks = 0
            return
        self._setbacks += 1
        await asyncio.sleep(self._backoff.wait(self._setbacks))

    def _own_errors(self, error: KafkaError, now: float) -> OwnErrors:
        """What units met themselves: with a record, or with offsets that were refused."""
        found: dict[UnitMember, DeliveryError] = {}
        of_offsets = self._group_asked is not None and (is_of_offsets(error) or isinstance(error, TimeoutException))
        for member in self._group.joined:
            for delivery in member.deliveries:
                own = delivery.exception() if delivery.done() else None
                if own is not None and not isinstance(own, TransactionAbortedException):
                    found[member] = DeliveryError.of(own, Outcome.NOT_SENT, own.topic_partition)
                    break
            if of_offsets and any(group == self._group_asked for group, _ in member.offsets):
                found[member] = DeliveryError.of(error, Outcome.NOT_SENT)
        if any(map(is_of_a_late_record, found.values())):
            found |= self._late_as_well(found, now)
        return found

    def _late_as_well(self, found: Mapping[UnitMember, DeliveryError], now: float) -> dict[UnitMember, DeliveryError]:
        """Units whose records would be late in a moment, because they joined a moment after those that are. Each would
        take a transaction of delivery.timeout.ms to find that out."""
        late: dict[UnitMember, DeliveryError] = {}
        for member in self._group.joined:
            if member in found or not self._group.has_had_its_time(member, now):
                continue
            for delivery in member.deliveries:
                if not (delivery.done() and delivery.exception() is None):
                    result, _ = delivery.place()
                    error = TimeoutException(
                        f"a record of the unit was not delivered to {result.topic!r} within "
                        f"delivery.timeout.ms={self._delivery_timeout_ms}, nor were others of its transaction"
                    )
                    late[member] = DeliveryError.of(error, Outcome.NOT_SENT, (result.topic, result.partition))
                    break
        return late

    def _expire(self) -> None:
        for member in self._group.expire(self._loop.time()):
            error = member.setback
            if error is None:
                late = TimeoutException(
                    f"the unit found no transaction within delivery.timeout.ms={self._delivery_timeout_ms} of its end: "
                    f"{self._transactions.status.state.value}"
                )
                error = DeliveryError.of(late, Outcome.NOT_SENT)
            self._settled(member, error)

    def _fail_all(self, error: KafkaError) -> None:
        self._fail_joined(error)
        self._give_up(error)

    def _fail_joined(self, error: KafkaError, own: OwnErrors = NO_ERRORS, *, goes_on: bool = False) -> None:
        """The transaction has no known end, or will never be committed; ``goes_on``: it may still be. Units fail with
        their ``own`` errors, if they met any."""
        outcome = Outcome.UNKNOWN if goes_on or self._transactions.may_be_committed else Outcome.NOT_SENT
        for member in self._group.lost():
            met = own.get(member)
            where = None if met is None else met.topic_partition
            self._settled(member, DeliveryError.of(met or error, outcome, where))

    def _give_up(self, error: KafkaError) -> None:
        """Fails the units that wait: no transaction can be begun for them."""
        for member in self._group.give_up():
            self._settled(member, DeliveryError.of(error, Outcome.NOT_SENT))


def _merged(members: Iterable[UnitMember]) -> list[tuple[ConsumerGroupMetadata, Offsets]]:
    """One request for each group and membership. Where units name a partition twice, the later one's offset counts.

    Units may name a group by different memberships, or by its id alone. What they ask for is never sent under another
    membership than theirs, so a partition that several of them name is in several requests, of which the last counts.
    """
    merged: dict[str, list[tuple[ConsumerGroupMetadata, dict[Any, Any]]]] = {}
    for member in members:
        for group, offsets in member.offsets:
            requests = merged.setdefault(group.group_id, [])
            for other, asked in reversed(requests):
                if other == group:
                    asked.update(offsets)
                    break
                if not asked.keys().isdisjoint(offsets):
                    requests.append((group, dict(offsets)))
                    break
            else:
                requests.append((group, dict(offsets)))
    return [request for requests in merged.values() for request in requests]
